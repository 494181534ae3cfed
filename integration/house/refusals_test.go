package house

import (
	"go/ast"
	"strings"
	"testing"
)

// TestRefusalsAreInTheirRoom checks that the handlers of /mcp and /sse write no refusal by hand: each has its function
// in internal/gateway.
func TestRefusalsAreInTheirRoom(t *testing.T) {
	limited := 0
	sources(t, func(path string, n ast.Node) {
		used, ok := n.(*ast.SelectorExpr)
		if !ok {
			return
		}
		switch folder := strings.TrimPrefix(path, "../../"); {
		case of(used, "jsonrpc") && used.Sel.Name == "CodeRateLimited":
			if limited++; !strings.HasPrefix(folder, "internal/gateway/") {
				t.Errorf("%s makes a 429 of MCP", path)
			}
		case of(used, "gateway") && used.Sel.Name == "WriteError" && !strings.HasPrefix(folder, "modules/platformapi/") && !strings.HasPrefix(folder, "modules/gatewayapi/"):
			t.Errorf("%s makes a refusal", path)
		}
	})
	if limited == 0 {
		t.Error("found no 429 of MCP: how it is made has changed")
	}
}
