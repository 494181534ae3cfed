package app

import (
	"encoding/json"
	"net/http"
	"os"

	"github.com/caddyserver/caddy/v2"
)

// ProcessAdminPath is the address on Caddy's admin endpoint at which a gateway tells who it is.
const ProcessAdminPath = "/durward/process"

// ProcessInfo is what it tells to whoever is about to start another one.
type ProcessInfo struct {
	PID int `json:"pid"`
	// Exiting: another one may take its place, and shares its ports until it has gone.
	Exiting bool `json:"exiting"`
}

func showProcess(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet {
		return caddy.APIError{HTTPStatus: http.StatusMethodNotAllowed}
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(ProcessInfo{PID: os.Getpid(), Exiting: caddy.Exiting()})
}
