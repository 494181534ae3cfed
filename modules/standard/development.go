//go:build !nodev

package standard

// Development mode. The build tag nodev leaves it out of binaries for production.
import _ "github.com/durward-gateway/durward/modules/devidp"
