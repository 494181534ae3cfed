package routes

import (
	"encoding/csv"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// CSV is the type of tables of text.
const CSV = "text/csv"

// Events is the type of event streams.
const Events = "text/event-stream"

// Prefers reports whether a client would rather have another type than JSON: its Accept names it, with a greater weight than
// JSON if it names both. Wildcards are JSON.
func (q *Request) Prefers(media string) bool {
	weights := make(map[string]float64)
	for _, value := range q.HTTP.Header.Values("Accept") {
		for kind := range strings.SplitSeq(value, ",") {
			name, parameters, err := mime.ParseMediaType(kind)
			if err != nil {
				continue
			}
			weight := 1.0
			if text, ok := parameters["q"]; ok {
				if weight, err = strconv.ParseFloat(text, 64); err != nil {
					continue
				}
			}
			weights[name] = max(weights[name], weight)
		}
	}
	return weights[media] > weights[jsonMedia]
}

// Tabular returns the result of a route that answers with a table. The first row has the names of the columns.
func Tabular(name string, rows [][]string) Streamed {
	return func(w http.ResponseWriter) error {
		h := w.Header()
		h.Set("Content-Type", CSV+"; charset=utf-8; header=present")
		h.Set("Content-Disposition", `attachment; filename="`+name+`.csv"`)
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(http.StatusOK)
		out := csv.NewWriter(w)
		for _, row := range rows {
			safe := make([]string, len(row))
			for i, cell := range row {
				safe[i] = inert(cell)
			}
			if out.Write(safe) != nil {
				return nil // the client has gone
			}
		}
		out.Flush()
		return nil
	}
}

// inert keeps a spreadsheet from taking a text for a formula, which could send the table elsewhere.
func inert(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
