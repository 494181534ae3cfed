package routes

import (
	"reflect"
	"sync"

	"github.com/durward-gateway/durward/internal/api/openapi"
	"github.com/durward-gateway/durward/internal/gateway"
)

// families describe the families of the API that this program has.
var families []func() ([]openapi.Operation, error)

// Register adds a family to the API's description. It is for init functions.
func Register(describe func() ([]openapi.Operation, error)) { families = append(families, describe) }

// operations describes the routes of all families, once: they are the same as long as the program runs.
var operations = sync.OnceValues(func() ([]openapi.Operation, error) {
	var all []openapi.Operation
	for _, describe := range families {
		of, err := describe()
		if err != nil {
			return nil, err
		}
		all = append(all, of...)
	}
	return all, nil
})

// Document describes all families. version is that of the program.
func Document(publicURL, version string) (*openapi.Document, error) {
	all, err := operations()
	if err != nil {
		return nil, err
	}
	return openapi.New(openapi.Head{URL: publicURL, Version: version, Refusal: reflect.TypeFor[gateway.ServiceError]()}, all)
}
