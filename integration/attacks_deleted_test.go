package integration

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestAttackServerDeletedUnderASlowBody checks that a client that sends its body slowly until the server is deleted
// reaches nothing (A16): the server was looked up before the body came.
func TestAttackServerDeletedUnderASlowBody(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	u := answering(t)
	s := g.createServer(u.url, nil)
	connection, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		t.Fatal(err)
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}`
	if _, err := io.WriteString(connection, g.rawPost(s.path, g.token(alice), lengthLine(body)+"Expect: 100-continue\r\n", "")); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(connection)
	// The gateway asks for the body: caller and server are known by now.
	if line, err := reader.ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("first line %q, %v", line, err)
	}
	if _, err := reader.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	g.api(g.token(admin), http.MethodDelete, "/api/servers/"+s.ID, nil)
	if _, err := io.WriteString(connection, body); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	answer{status: response.StatusCode, header: response.Header, body: content}.wantError(t, http.StatusNotFound, "ServerNotFound")
	u.wantNothing(t)
}
