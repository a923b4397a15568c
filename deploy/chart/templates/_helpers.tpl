{{- /* The name of all objects. */ -}}
{{- define "phalanx.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 58 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 58 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 58 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The name of the account. */ -}}
{{- define "phalanx.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "phalanx.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name: name an account that is there, or let serviceAccount.create be true" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- /* Labels of the pods by which they are selected. */ -}}
{{- define "phalanx.selected" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- /* Labels of the pods. */ -}}
{{- define "phalanx.podLabels" -}}
{{ include "phalanx.selected" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{- /* Labels of every object. */ -}}
{{- define "phalanx.labels" -}}
{{ include "phalanx.podLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- /* Where the program is. */ -}}
{{- define "phalanx.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}

{{- /* The secret with the certificate of the port, if there is one; who asks for tokens needs one. */ -}}
{{- define "phalanx.tls" -}}
{{- if eq .Values.http.authentication "token" -}}
{{- required "http.tls.secretName: tokens would be sent in the clear; name a secret of type kubernetes.io/tls" .Values.http.tls.secretName -}}
{{- else -}}
{{- .Values.http.tls.secretName -}}
{{- end -}}
{{- end -}}

{{- /* Name, namespace and labels of what belongs to pods that reserve GPUs. */ -}}
{{- define "phalanx.reservation" -}}
name: gpu-reservation
namespace: kai-resource-reservation
labels:
  {{- include "phalanx.labels" . | nindent 2 }}
{{- end -}}

{{- /* Name, namespace and labels of an object of the installation. */ -}}
{{- define "phalanx.metadata" -}}
name: {{ include "phalanx.fullname" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "phalanx.labels" . | nindent 2 }}
{{- end -}}
