package adminapi

import (
	"encoding/json"
	"net/http"
	"os"

	"github.com/caddyserver/caddy/v2"
)

// ProcessPath is the address on Caddy's admin endpoint at which a gateway identifies its process.
const ProcessPath = "/durward/process"

// Process is the answer there, for a program that is about to start another gateway.
type Process struct {
	PID int `json:"pid"`
	// Exiting reports that another process may take this one's place. It shares the ports until this one is gone.
	Exiting bool `json:"exiting"`
}

func showProcess(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet {
		return caddy.APIError{HTTPStatus: http.StatusMethodNotAllowed}
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(Process{PID: os.Getpid(), Exiting: caddy.Exiting()})
}
