// Package decoding unpacks HTTP answers in gzip and zstd. Servers, and proxies in front of them, send these although
// `identity` was asked for. The package refuses all other encodings, and bounds the memory of a decoder. It does not
// bound the size of the result: its callers have to.
package decoding

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds the memory that a zstd answer makes its decoder keep, as RFC 9659 demands for HTTP (attack W09).
const maxWindow = 8 << 20

var errTwice = errors.New("content is encoded more than once")

// Name returns the encoding that the fields Content-Encoding of an answer name: gzip, zstd, or "" for none. An
// encoding that cannot be decoded is an error.
func Name(fields []string) (string, error) {
	name := ""
	for _, field := range fields {
		switch field = strings.ToLower(strings.TrimSpace(field)); {
		case field == "", field == "identity", field == "none": // frameworks say `none` to keep their own compression away from streams
		case name != "":
			return "", errTwice
		default:
			name = field
		}
	}
	switch name {
	case "", "gzip", "zstd":
		return name, nil
	case "x-gzip":
		return "gzip", nil
	}
	return "", fmt.Errorf("content is encoded with %.32q though identity was asked for, and only gzip and zstd are decoded", name)
}

// NewReader returns a reader of the decoded text of src. It may read from src at once. The size of the result is not
// bounded.
func NewReader(name string, src io.Reader) (io.Reader, error) {
	var r io.Reader
	var err error
	if name == "gzip" {
		r, err = gzip.NewReader(src)
	} else {
		r, err = zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}
