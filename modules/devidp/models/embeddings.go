package models

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"math"
	"net/http"
)

const (
	dimensions    = 64
	maxDimensions = 1024
)

// embeddings answers POST /v1/embeddings.
func (p *provider) embeddings(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Model      string          `json:"model"`
		Input      json.RawMessage `json:"input"`
		Format     string          `json:"encoding_format"`
		Dimensions int             `json:"dimensions"`
	}
	if !read(w, r, &asked, complain) {
		return
	}
	if asked.Model != Embed {
		noModel(w, asked.Model)
		return
	}
	texts := make([]string, 1)
	if json.Unmarshal(asked.Input, &texts[0]) != nil && json.Unmarshal(asked.Input, &texts) != nil {
		complain(w, http.StatusBadRequest, "invalid_request_error", "The input is neither a text nor a list of texts.")
		return
	}
	if asked.Dimensions == 0 {
		asked.Dimensions = dimensions
	}
	if asked.Dimensions < 1 || asked.Dimensions > maxDimensions {
		complain(w, http.StatusBadRequest, "invalid_request_error", "There are 1 to 1024 dimensions.")
		return
	}
	data, used := []object{}, 0
	for i, text := range texts {
		used += tokens(text)
		vector := vectorOf(text, asked.Dimensions)
		embedding := any(vector)
		if asked.Format == "base64" {
			embedding = packed(vector)
		}
		data = append(data, object{"object": "embedding", "index": i, "embedding": embedding})
	}
	write(w, http.StatusOK, object{"object": "list", "model": Embed, "data": data, "usage": object{"prompt_tokens": used, "total_tokens": used}})
}

// vectorOf returns the vector of a text, of length 1. Each word is counted in the dimension of its hash: texts with the
// same words are near each other.
func vectorOf(text string, dimensions int) []float32 {
	vector := make([]float32, dimensions)
	for _, word := range wordsOf(text) {
		h := fnv.New32a()
		_, _ = h.Write([]byte(word))
		vector[h.Sum32()%uint32(dimensions)]++
	}
	var square float64
	for _, v := range vector {
		square += float64(v) * float64(v)
	}
	if square == 0 {
		vector[0], square = 1, 1
	}
	for i := range vector {
		vector[i] /= float32(math.Sqrt(square))
	}
	return vector
}

// packed returns a vector in the form for clients that ask for base64: little-endian floats.
func packed(vector []float32) string {
	raw := make([]byte, 0, 4*len(vector))
	for _, v := range vector {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return base64.StdEncoding.EncodeToString(raw)
}
