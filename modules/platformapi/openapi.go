package platformapi

import (
	_ "embed" // the page
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/openapi"
	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/modules/app/routes"
)

func init() {
	routes.Register(func() ([]openapi.Operation, error) {
		h := &Handler{logger: zap.NewNop(), now: time.Now}
		return h.api().Describe()
	})
}

// describeAPI answers the description of both families of the API. It is public, and the same for everybody.
func describeAPI(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	version, _ := caddy.Version()
	return routes.Document(q.Core.PublicURL, version)
}

var (
	//go:embed docs.html
	docsText string
	docsPage = webpage.MustParse(docsText).Wide()
)

// showAPI answers the description of the API as a page.
func showAPI(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	version, _ := caddy.Version()
	document, err := routes.Document(q.Core.PublicURL, version)
	if err != nil {
		return nil, err
	}
	var data struct {
		Groups  []openapi.Group
		Schemas []openapi.Schema
	}
	if data.Groups, err = document.Groups(); err != nil {
		return nil, err
	}
	if data.Schemas, err = document.Schemas(); err != nil {
		return nil, err
	}
	return routes.Streamed(func(w http.ResponseWriter) error {
		return docsPage.Write(w, http.StatusOK, "The API of this gateway", data)
	}), nil
}

// api returns the family of this handler.
func (h *Handler) api() routes.API[*request] {
	return routes.API[*request]{
		Table: table, Of: func(q *routes.Request) *request { return &request{Request: q, handler: h} },
		Refuse: h.refuse, ShapeStatus: http.StatusUnprocessableEntity,
	}
}
