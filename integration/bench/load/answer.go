package main

import (
	"bufio"
	"bytes"
	"errors"
	"strconv"
)

// answer holds the parts of an answer that the load reads.
type answer struct {
	status int
	last   bool // the connection ends with it
}

var errAnswer = errors.New("this is no HTTP/1.1 answer with a length")

// readAnswer reads an answer to a POST whole, and keeps nothing of it: http.ReadResponse took a fifth of the load's
// processor, for which the measured program has to wait.
func readAnswer(r *bufio.Reader) (a answer, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return a, err
	}
	if len(line) < len("HTTP/1.1 200\r\n") || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return a, errAnswer
	}
	if a.status, err = strconv.Atoi(string(line[9:12])); err != nil || (line[12] != ' ' && line[12] != '\r') {
		return a, errAnswer
	}
	length, chunked := -1, false
	for {
		if line, err = r.ReadSlice('\n'); err != nil {
			return a, err
		}
		if line = bytes.TrimSuffix(line, []byte("\r\n")); len(line) == 0 {
			break
		}
		name, value, found := bytes.Cut(line, []byte(":"))
		if !found {
			return a, errAnswer
		}
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			n, err := strconv.ParseUint(string(value), 10, 31)
			if err != nil || (length >= 0 && length != int(n)) {
				return a, errAnswer
			}
			length = int(n)
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = bytes.EqualFold(value, []byte("chunked"))
		case bytes.EqualFold(name, []byte("Connection")):
			a.last = bytes.EqualFold(value, []byte("close"))
		}
	}
	switch {
	case chunked:
		return a, discardChunks(r)
	case length >= 0:
		_, err = r.Discard(length)
		return a, err
	}
	return a, errAnswer
}

// discardChunks reads to the end of a body in chunks (RFC 9112 section 7.1).
func discardChunks(r *bufio.Reader) error {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		digits, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte(";"))
		size, err := strconv.ParseUint(string(digits), 16, 31)
		if err != nil {
			return errAnswer
		}
		if size == 0 {
			break
		}
		if _, err := r.Discard(int(size)); err != nil {
			return err
		}
		if line, err = r.ReadSlice('\n'); err != nil {
			return err
		}
		if string(line) != "\r\n" {
			return errAnswer
		}
	}
	for { // trailers
		line, err := r.ReadSlice('\n')
		if err != nil || len(bytes.TrimSpace(line)) == 0 {
			return err
		}
	}
}
