package format

import (
	"slices"
	"strconv"
)

// appendDetail appends a record's detail, with the same bytes as marshal. Each call to a model has a detail of texts and
// numbers. All other values are left to marshal.
func appendDetail(b []byte, name byte, detail map[string]any) []byte {
	var room [8]string
	members := room[:0]
	for member := range detail {
		members = append(members, member)
	}
	slices.Sort(members)
	start := len(b)
	b = append(appendName(b, name), '{')
	for i, member := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, member), ':')
		switch value := detail[member].(type) {
		case string:
			b = appendText(b, value)
		case int64:
			b = strconv.AppendInt(b, value, 10)
		case int:
			b = strconv.AppendInt(b, int64(value), 10)
		case bool:
			b = strconv.AppendBool(b, value)
		default:
			encoded := Marshal(value)
			if encoded == nil {
				return b[:start]
			}
			b = append(b, encoded...)
		}
	}
	return append(b, '}')
}
