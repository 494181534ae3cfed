// Package standard links every module of the gateway. Custom builds get them by importing the root package.
package standard

import (
	_ "github.com/durward-gateway/durward/modules/app"
	_ "github.com/durward-gateway/durward/modules/auth"
	_ "github.com/durward-gateway/durward/modules/console"
	_ "github.com/durward-gateway/durward/modules/coordinators"
	_ "github.com/durward-gateway/durward/modules/credential"
	_ "github.com/durward-gateway/durward/modules/gatewayapi"
	_ "github.com/durward-gateway/durward/modules/identities"
	_ "github.com/durward-gateway/durward/modules/limit"
	_ "github.com/durward-gateway/durward/modules/llm"
	_ "github.com/durward-gateway/durward/modules/logwriter"
	_ "github.com/durward-gateway/durward/modules/mcp"
	_ "github.com/durward-gateway/durward/modules/pipeline"
	_ "github.com/durward-gateway/durward/modules/platformapi"
	_ "github.com/durward-gateway/durward/modules/policy"
	_ "github.com/durward-gateway/durward/modules/providers"
	_ "github.com/durward-gateway/durward/modules/scim"
	_ "github.com/durward-gateway/durward/modules/session"
	_ "github.com/durward-gateway/durward/modules/sse"
	_ "github.com/durward-gateway/durward/modules/stores"
)
