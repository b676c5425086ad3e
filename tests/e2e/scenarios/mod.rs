//! What happens to people's writes, one theme a file.

mod apply;
mod availability;
mod baseline;
mod capacity;
mod chart;
mod config;
mod deletion;
mod differential;
mod failing;
mod helm_release;
mod kinds;
mod policy;
mod rollback;
mod service_route;
mod update;

/// Every scenario with its name, THEME::NAME.
pub fn all() -> Vec<(&'static str, fn())> {
    macro_rules! scenarios {
        ($($theme:ident: $($name:ident),+;)+) => {
            vec![$($((concat!(stringify!($theme), "::", stringify!($name)), $theme::$name as fn())),+),+]
        };
    }
    scenarios! {
        chart:
            asks_only_about_what_it_names,
            leaves_exempt_namespaces_out_of_selector_and_policy,
            asks_for_no_secrets_and_no_wildcards,
            refuses_values_that_contradict,
            the_service_account_may_read_what_the_server_needs_and_no_more;
        baseline:
            the_defaults_that_offline_tests_fill_in_are_the_api_servers,
            client_side_apply_stores_all_and_changes_nothing_the_second_time,
            server_side_apply_stores_all_and_changes_nothing_the_second_time;
        apply:
            an_unsafe_deployment_is_denied_with_all_its_findings,
            a_safe_deployment_is_completed_and_rolls_out_once,
            client_side_apply_says_unchanged_the_second_time,
            server_side_apply_has_no_conflict_for_a_second_manager,
            dry_run_answers_the_same_and_stores_nothing,
            diff_shows_what_the_author_changed,
            exempt_namespaces_are_not_asked_about;
        update:
            replacing_with_the_same_manifest_changes_nothing,
            a_patched_image_rolls_out_with_the_fixes_it_had,
            a_patch_to_a_mutable_tag_is_denied,
            labels_and_annotations_do_not_reach_us_and_scale_is_only_asked_about,
            labels_on_a_spec_of_850_kb_do_not_reach_us,
            restart_adds_nothing_of_ours,
            old_violations_only_warn_and_new_ones_are_denied;
        rollback:
            undo_brings_the_previous_replica_set_back,
            undo_to_a_revision_from_before_plimsoll;
        kinds:
            bare_pods_and_replica_sets_are_judged,
            jobs_are_judged_and_left_as_they_are,
            a_budget_that_blocks_every_eviction_is_denied,
            stateful_and_daemon_sets_get_their_fixes,
            rollouts_are_judged;
        config:
            config_and_workload_in_one_apply_carry_the_new_digest,
            a_config_change_alone_rolls_nothing,
            a_config_may_come_after_its_workload;
        policy:
            a_changed_policy_is_followed_within_seconds,
            a_broken_policy_changes_nothing,
            break_glass_turns_denials_into_warnings;
        differential:
            the_api_server_and_the_engine_say_the_same;
        deletion:
            finalizers_can_be_removed_from_what_is_being_deleted;
        helm_release:
            a_chart_installs_and_upgrades,
            our_own_chart_upgrades_after_its_ca_was_filled_in;
        capacity:
            a_full_quota_does_not_stop_the_rollout,
            required_anti_affinity_does_not_stop_the_rollout;
        availability:
            a_rollout_of_ours_never_falls_below_its_replicas;
        failing:
            closed_when_asked_to_and_open_for_pods,
            open_as_shipped;
        service_route:
            the_way_an_installation_is_called;
    }
}
