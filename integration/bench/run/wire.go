package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// call is a tools/call of 220 bytes.
const call = `{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"create_issue","arguments":{"title":"Gateway drops the ` +
	`session header on every second reconnect","team":"GATEWAY","priority":2,"labels":["defect","edge"]}}}`

// These are a call to a model, and its path.
const (
	chatPath = "/api/llm-gateway/v1/chat/completions"
	chat     = `{"model":"bench-chat","messages":[{"role":"user","content":"Say something about foxes and dogs, please."}]}`
)

// wire is one keep-alive connection that sends prepared bytes, so that the client costs little next to the measured
// program.
type wire struct {
	connection net.Conn
	reader     *bufio.Reader
}

func dial(address string) (*wire, error) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &wire{connection, bufio.NewReader(connection)}, nil
}

// request returns the whole text of a tools/call; token "" leaves the header out.
func request(host, path, token string) []byte { return post(host, path, token, call) }

// post returns the whole text of a request with a JSON body.
func post(host, path, token, body string) []byte {
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
		"Content-Length: %d\r\n", path, host, len(body))
	if token != "" {
		head += "Authorization: Bearer " + token + "\r\n"
	}
	return []byte(head + "\r\n" + body)
}

// exchange sends a request and reads the whole answer, which must be 200.
func (w *wire) exchange(request []byte) error {
	status, err := w.status(request)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("answered with status %d", status)
	}
	return err
}

// status sends a request, reads the whole answer and returns its status.
func (w *wire) status(request []byte) (int, error) {
	_ = w.connection.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := w.connection.Write(request); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(w.reader, nil)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}
