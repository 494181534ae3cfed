package gatewayapi

import (
	"net/http"
	"slices"
	"testing"

	"github.com/durward-gateway/durward/internal/llm/llmedit"
	"github.com/durward-gateway/durward/internal/ops/jobs"
)

// TestEval checks the shape of a request for an evaluation. The work itself is tested in internal/ops/jobs.
func TestEval(t *testing.T) {
	a := newAPI(t)
	ids := a.one(a.adam)
	path := "/admin/smart-models/" + ids[smartPath] + "/eval"
	example := object{"messages": []object{{"role": "user", "content": "Hi"}}, "label": "s"}
	job := a.do(a.adam, http.MethodPost, path, object{"examples": []object{example, {"input": "Prove it", "system": "x", "slot": 0}}}).want(http.StatusCreated)
	if job["kind"] != "smart_model_eval" || job["state"] != "queued" || job["subject_id"] != ids[smartPath] {
		t.Errorf("%v", job)
	}
	eval := func(examples ...object) answer {
		return a.do(a.adam, http.MethodPost, path, object{"examples": examples})
	}
	a.do(a.adam, http.MethodPost, path, object{"examples": []object{}}).wantBad("examples: List should have at least 1 item")
	eval(slices.Repeat([]object{example}, jobs.MaxEvalExamples+1)...).wantBad("examples: List should have at most 1000 items")
	eval(object{"input": "x"}).wantBad("examples[0].slot: " + textOneSlot)
	eval(object{"input": "x", "slot": 0, "label": "s"}).wantBad("examples[0].slot: " + textOneSlot)
	eval(example, object{"input": "x", "slot": 1}).wantBad("examples[1].slot: " + llmedit.TextNoSuchSlot)
	eval(object{"input": "x", "label": "S"}).wantBad("examples[0].label: " + textOneLabel)
	eval(object{"slot": 0}).wantBad("examples[0].messages: " + textOneRequest)
	eval(object{"input": "x", "slot": 0, "model": "other"}).wantBad("examples[0].model: Extra inputs are not permitted")
	for range jobs.MaxWaiting - 1 {
		eval(example).want(http.StatusCreated)
	}
	eval(example).want(http.StatusTooManyRequests)
}
