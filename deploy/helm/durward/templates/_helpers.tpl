{{- define "durward.name" -}}
{{- if contains "durward" .Release.Name -}}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{- else -}}{{ printf "%s-durward" .Release.Name | trunc 52 | trimSuffix "-" }}{{- end -}}
{{- end -}}

{{- define "durward.selector" -}}
app.kubernetes.io/name: durward
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "durward.labels" -}}
{{ include "durward.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* The Caddyfile of every pod. Secrets are files: nothing of them is in here. */}}
{{- define "durward.caddyfile" -}}
{{- if .Values.caddyfile -}}
{{ .Values.caddyfile }}
{{- else -}}
{
	admin unix//run/durward/admin.sock
	persist_config off
{{- if .Values.proxyProtocol.allow }}
	servers {
		listener_wrappers {
			proxy_protocol {
				allow {{ join " " .Values.proxyProtocol.allow }}
			}
		}
	}
{{- end }}
	log {
		output durward
	}
	durward {
		public_url {{ .Values.publicUrl }}
		store postgres {file./run/secrets/{{ .Values.secretKeys.database }}} {
			max_conns {{ .Values.store.maxConns }}
			migrate {{ .Values.store.migrate }}
		}
		coordinate {{ .Values.coordinate }}{{ if eq .Values.coordinate "valkey" }} {file./run/secrets/{{ .Values.secretKeys.valkey }}}{{ end }}
{{- if ne .Values.coordinate "local" }}
		limits {
			nodes {{ if .Values.autoscaling.enabled }}{{ .Values.autoscaling.maxReplicas }}{{ else }}{{ .Values.replicas }}{{ end }}
		}
{{- end }}
		master_key{{ range .Values.secretKeys.masterKeys }} {file./run/secrets/{{ . }}}{{ end }}
{{- if not .Values.identity }}{{ fail "identity: name at least one issuer" }}{{ end }}
{{- range .Values.identity }}
		identity oidc {{ .issuer }} {
			audience {{ join " " (default (list $.Values.publicUrl) .audience) }}
{{- with .organization }}
			organization {{ . }}
{{- end }}
{{- range $claim, $path := .claims }}
			claim {{ $claim }} {{ $path }}
{{- end }}
{{- with .options }}
			{{- . | trim | nindent 12 | replace "\n            " "\n\t\t\t" }}
{{- end }}
		}
{{- end }}
{{- with .Values.returnUrls }}
		return_url {{ join " " . }}
{{- end }}
		streams {
			drain {{ .Values.drainSeconds }}s
		}
{{- with .Values.options }}
		{{- . | trim | nindent 8 | replace "\n        " "\n\t\t" }}
{{- end }}
	}
}

http://:8080 {
	durward
}
{{- if .Values.metrics.enabled }}

http://:9090 {
	metrics
}
{{- end }}
{{- end }}
{{- end -}}
