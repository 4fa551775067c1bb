{{- define "spinney.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "spinney.config" -}}
apiVersion: operator.config.grove.io/v1alpha1
kind: OperatorConfiguration
{{ toYaml .Values.config }}
{{- end -}}

{{- define "spinney.configName" -}}
grove-operator-cm-{{ include "spinney.config" . | sha256sum | trunc 8 }}
{{- end -}}

{{- define "spinney.profiles" -}}
{{- $names := list "default-scheduler" -}}
{{- range (dig "scheduler" "profiles" list .Values.config) -}}{{- $names = append $names .name -}}{{- end -}}
{{- join "," $names -}}
{{- end -}}

{{- define "spinney.labels" -}}
app.kubernetes.io/name: {{ . }}
app.kubernetes.io/part-of: spinney
{{- end -}}
