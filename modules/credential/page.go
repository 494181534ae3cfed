package credential

import (
	_ "embed" // the page
	"net/http"

	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/modules/app/paths"
)

//go:embed page.html
var pageText string

var pageTemplate = webpage.MustParse(pageText)

// page is the page for a browser that comes back.
type page struct {
	Status int
	Title  string
	Text   string
	Holder *holder // nil when nothing was connected
	Link   string  // where to log in, ""
	Again  string  // where to try once more, ""
}

// holder names the user who holds a connection now. A victim who was lured here by another user's link sees that it is
// a different user (login CSRF), and can undo the connection.
type holder struct {
	User, Organization string
	Token              string
	Action             string
}

func (p page) write(w http.ResponseWriter, brand *webpage.Brand) {
	if p.Holder != nil {
		p.Holder.Action = paths.Undo
	}
	if err := pageTemplate.WriteIn(w, p.Status, webpage.Frame{Title: p.Title, Brand: brand}, p); err != nil {
		gateway.WriteInternalError(w)
	}
}
