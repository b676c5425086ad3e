{{- define "plimsoll.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "plimsoll.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "plimsoll.labels" -}}
{{ include "plimsoll.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "plimsoll.policyConfigMap" -}}
{{- .Values.policy.existingConfigMap | default (printf "%s-policy" (include "plimsoll.name" .)) -}}
{{- end -}}

{{/* Everywhere but in the exempt namespaces and our own. */}}
{{- define "plimsoll.namespaceSelector" -}}
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values:
      {{- toYaml (append .Values.exemptNamespaces .Release.Namespace | uniq | sortAlpha) | nindent 6 }}
{{- end -}}

{{/*
What every entry says; called with (dict "root" $ "path" "/mutate"), and with
"own" true for the one entry that looks into our own namespace.
No caBundle: whoever minted the certificate fills it in, and Helm, which applies
server-side, would take it away again or refuse the next upgrade.
*/}}
{{- define "plimsoll.entry" -}}
{{- $root := .root -}}
{{- $webhook := $root.Values.webhook -}}
{{- if and $webhook.url $webhook.service -}}
{{- fail "webhook.url and webhook.service exclude each other: the server is either outside the cluster or behind a Service" -}}
{{- end -}}
{{- if or (lt (int $webhook.timeoutSeconds) 1) (gt (int $webhook.timeoutSeconds) 5) -}}
{{- fail (printf "webhook.timeoutSeconds is %v: it must be 1 to 5, for every write waits this long when nobody answers" $webhook.timeoutSeconds) -}}
{{- end -}}
clientConfig:
  {{- if $webhook.url }}
  url: {{ printf "%s%s" (trimSuffix "/" $webhook.url) .path | quote }}
  {{- else }}
  service:
    namespace: {{ $root.Release.Namespace }}
    name: {{ $webhook.service | default (include "plimsoll.name" $root) }}
    port: {{ $webhook.port }}
    path: {{ .path }}
  {{- end }}
admissionReviewVersions: [v1]
sideEffects: None
matchPolicy: Equivalent
timeoutSeconds: {{ $webhook.timeoutSeconds }}
namespaceSelector:
  {{- if .own }}
  matchLabels:
    kubernetes.io/metadata.name: {{ $root.Release.Namespace }}
  {{- else }}
  {{- include "plimsoll.namespaceSelector" $root | nindent 2 }}
  {{- end }}
{{- end -}}

{{/*
Labels, annotations and status are none of our business. An object without a
spec makes this an error, which under Fail forbids the write: only kinds that
always have one may share it.
*/}}
{{- define "plimsoll.specChanges" -}}
- name: spec-changes
  expression: request.operation != 'UPDATE' || object.spec != oldObject.spec
{{- end -}}

{{/* What a controller made is judged, and mended, at its owner. */}}
{{- define "plimsoll.noController" -}}
- name: no-controller
  expression: >-
    !has(object.metadata.ownerReferences) ||
    !object.metadata.ownerReferences.exists(r, has(r.controller) && r.controller)
{{- end -}}
