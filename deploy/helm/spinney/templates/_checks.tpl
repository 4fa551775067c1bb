{{- /* What cannot work is refused before anything is installed. */ -}}
{{- define "spinney.checks" -}}
{{- if and .Values.operator.enabled (gt (int .Values.replicaCount) 1) (not (dig "leaderElection" "enabled" false .Values.config)) -}}
{{- fail (printf "replicaCount %d needs config.leaderElection.enabled: true; without it every replica would act" (int .Values.replicaCount)) -}}
{{- end -}}
{{- if not (or .Values.operator.enabled .Values.coscheduler.enabled) -}}
{{- fail "operator.enabled and coscheduler.enabled are both false: nothing would be installed" -}}
{{- end -}}
{{- if and .Values.dashboard.enabled (not .Values.dashboard.certificate.secretName) (not .Values.dashboard.behindProxy) -}}
{{- fail "dashboard.enabled needs dashboard.certificate.secretName (a Secret with tls.crt and tls.key), or dashboard.behindProxy: true" -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.service.enabled) -}}
{{- fail "metrics.serviceMonitor.enabled needs metrics.service.enabled: true; without Services there is nothing to scrape" -}}
{{- end -}}
{{- $lease := dig "leaderElection" "resourceNamespace" "" .Values.config | default .Release.Namespace -}}
{{- if and .Values.operator.enabled (ne $lease .Release.Namespace) -}}
{{- fail (printf "config.leaderElection.resourceNamespace is %s; the operator may keep a Lease in %s only, where it is installed" $lease .Release.Namespace) -}}
{{- end -}}
{{- if and .Values.operator.enabled (not (dig "server" "healthProbes" "enable" true .Values.config)) -}}
{{- fail "config.server.healthProbes.enable is false; the kubelet would take the operator for one that hangs" -}}
{{- end -}}
{{- end -}}
