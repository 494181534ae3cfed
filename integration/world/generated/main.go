// Command generated uses the client that oapi-codegen makes of the gateway's /openapi.json: it makes an entry of the
// server directory, reads it back, and asks for one that does not exist. It is built in a folder beside the client,
// which is not kept here.
//
//	generated ADDRESS TOKEN
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/durward-gateway/durward/integration/world/generated/api"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(address, token string) error {
	client, err := api.NewClientWithResponses(address, api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}))
	if err != nil {
		return err
	}
	ctx := context.Background()
	made, err := client.CreateEntryWithResponse(ctx, api.CreateEntryJSONRequestBody{Name: "Made by Go", Url: "https://go.example.com/mcp"})
	if err != nil {
		return err
	}
	if made.JSON200 == nil {
		return fmt.Errorf("making an entry: %s %s", made.Status(), made.Body)
	}
	read, err := client.GetEntryWithResponse(ctx, made.JSON200.Id)
	if err != nil {
		return err
	}
	if read.JSON200 == nil || read.JSON200.Name != "Made by Go" {
		return fmt.Errorf("reading it: %s %s", read.Status(), read.Body)
	}
	missing, err := client.GetEntryWithResponse(ctx, "0190cccc-0000-7000-8000-000000000001")
	if err != nil {
		return err
	}
	if missing.JSON4XX == nil || missing.JSON4XX.Error != "DirectoryNotFound" {
		return fmt.Errorf("one that does not exist: %s %s", missing.Status(), missing.Body)
	}
	fmt.Println(read.JSON200.Slug)
	return nil
}
