//go:build !nodev

package caddyfile

import "github.com/durward-gateway/durward/modules/devidp"

// development returns the directive of development mode, which comes before the pipeline.
func development() []directive {
	return []directive{{"durward_dev", func() handler { return new(devidp.Handler) }}}
}
