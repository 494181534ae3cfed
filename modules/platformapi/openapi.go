package platformapi

import (
	_ "embed" // the page
	"net/http"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/openapi"
	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/modules/app/routes"
)

func init() {
	routes.Register(func() ([]openapi.Operation, error) {
		h := &Handler{logger: zap.NewNop(), now: time.Now}
		return h.api().Describe()
	})
}

var (
	//go:embed docs.html
	docsText string
	docsPage = webpage.MustParse(docsText).Wide()
)

// description holds the texts in which the program describes its API, for one public URL: as JSON and as a page.
type description struct {
	publicURL  string
	brand      *webpage.Brand
	text, page []byte
}

// newest is the description that was asked for last. Everybody may ask, and making one takes milliseconds.
var newest atomic.Pointer[description]

func describe(publicURL string, brand *webpage.Brand) (*description, error) {
	if d := newest.Load(); d != nil && d.publicURL == publicURL && d.brand == brand {
		return d, nil
	}
	version, _ := caddy.Version()
	document, err := routes.Document(publicURL, version)
	if err != nil {
		return nil, err
	}
	d := &description{publicURL: publicURL, brand: brand}
	if d.text, err = document.JSON(); err != nil {
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
	if d.page, err = docsPage.Render(webpage.Frame{Title: "The API of this gateway", Brand: brand}, data); err != nil {
		return nil, err
	}
	newest.Store(d)
	return d, nil
}

// describeAPI answers the description of both families of the API. It is public, and the same for everybody.
func describeAPI(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	d, err := describe(q.Core.PublicURL, q.Core.Brand)
	if err != nil {
		return nil, err
	}
	return routes.Streamed(func(w http.ResponseWriter) error {
		gateway.WriteBody(w, http.StatusOK, d.text)
		return nil
	}), nil
}

// showAPI answers the same as a page.
func showAPI(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	d, err := describe(q.Core.PublicURL, q.Core.Brand)
	if err != nil {
		return nil, err
	}
	return routes.Streamed(func(w http.ResponseWriter) error {
		webpage.Frame{Brand: d.brand}.Secure(w.Header())
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(d.page) // the answer has begun: an error of the connection is no refusal
		return nil
	}), nil
}

// api returns the family of this handler.
func (h *Handler) api() routes.API[*request] {
	return routes.API[*request]{
		Table: table, Of: func(q *routes.Request) *request { return &request{Request: q, handler: h} },
		Refuse: h.refuse, ShapeStatus: http.StatusUnprocessableEntity,
	}
}
