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

{{/* Whether our session scheduler is deployed: "true" or nothing. */}}
{{- define "spinney.deploysScheduler" -}}
{{- if and .Values.operator.enabled (has "spinney-scheduler" (splitList "," (include "spinney.profiles" .))) -}}true{{- end -}}
{{- end -}}

{{- define "spinney.labels" -}}
app.kubernetes.io/name: {{ . }}
app.kubernetes.io/part-of: spinney
{{- end -}}

{{- define "spinney.coschedulerConfigName" -}}
spinney-coscheduler-cm-{{ toYaml .Values.coscheduler.config | sha256sum | trunc 8 }}
{{- end -}}

{{/* A scheduler: its account and its deployment. Takes root, name, command, resources and, if it reads one, config. */}}
{{- define "spinney.scheduler" -}}
{{- $root := .root -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "spinney.labels" .name | nindent 4 }}
spec:
  replicas: {{ $root.Values.replicaCount }}
  selector:
    matchLabels:
      {{- include "spinney.labels" .name | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "spinney.labels" .name | nindent 8 }}
      {{- with $root.Values.podAnnotations }}
      annotations: {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ .name }}
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: {{ .command }}
          image: {{ include "spinney.image" $root }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          args:
            - {{ .command }}
            {{- if .config }}
            - --config
            - /etc/spinney/config.yaml
            {{- end }}
            - --leader-elect
            - --lease-namespace={{ $root.Release.Namespace }}
            - --metrics-port=8080
            - --log-json
          ports:
            - {name: metrics, containerPort: 8080}
          livenessProbe: {httpGet: {path: /livez, port: metrics}}
          readinessProbe: {httpGet: {path: /readyz, port: metrics}}
          {{- if .config }}
          volumeMounts:
            - {name: config, mountPath: /etc/spinney, readOnly: true}
          {{- end }}
          resources: {{- toYaml .resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
      {{- with $root.Values.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $root.Values.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if .config }}
      volumes:
        - name: config
          configMap: {name: {{ .config }}}
      {{- end }}
{{- end -}}
