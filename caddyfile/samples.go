package caddyfile

import _ "embed" // the samples

// Dev is the Caddyfile of `durward dev`: everything in one process, loopback only. It reads DURWARD_DATA (default
// ./data), DURWARD_HOST (default 127.0.0.1) and DURWARD_PORT (default 8080).
//
//go:embed dev.caddyfile
var Dev []byte

// Edge is a sample for one production node.
//
//go:embed edge.caddyfile
var Edge []byte

// Cluster is a sample for each of several production nodes on one PostgreSQL database, with the pipeline written out.
//
//go:embed cluster.caddyfile
var Cluster []byte
