package sqlite

import "github.com/durward-gateway/durward/storage"

// pendingGateway stands for the methods of storage.Gateway until they are here.
type pendingGateway struct{ storage.Gateway }
