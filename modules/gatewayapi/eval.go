package gatewayapi

import (
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/llm/llmedit"
	"github.com/durward-gateway/durward/internal/ops/jobs"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

const (
	textOneSlot  = "Value error, an example has one of slot and label"
	textOneLabel = "Value error, exactly one slot should have this label"
)

// labelled is an example as the body has it: a request, and its expected slot by index or by label.
type labelled struct {
	request previewBody
	slot    validate.Field[int64]
	label   validate.Field[string]
	place   *validate.Object
}

// read reads an example. Its request is in the form of the runtime, or text alone.
func (l *labelled) read(q *request, o *validate.Object) {
	l.place = o
	l.slot = o.Int("slot", validate.Integer{Max: llmedit.MaxSlots - 1})
	l.label = o.Text("label", validate.Text{Max: llmedit.MaxLabel})
	if l.slot.Present == l.label.Present {
		o.Report(validate.ValueError, textOneSlot, "slot")
	}
	l.request.readRequest(q, o)
	if l.request.request != nil {
		o.Only()
	}
}

// evalSmart starts a job that decides about labelled examples as the smart model does. The determiner is asked where the
// smart model would ask it; its tokens count for the administrator. Nothing else is sent anywhere.
func evalSmart(q *request) (any, error) {
	m, lookup := q.presentSmart()
	var examples []labelled
	if err := q.Read(false, func(o *validate.Object) {
		for _, one := range o.Objects("examples", validate.List{Flags: validate.Required, Min: 1, Max: jobs.MaxEvalExamples}).Value {
			var l labelled
			l.read(q, one)
			examples = append(examples, l)
		}
		o.Only()
		for i := range examples {
			if lookup == nil {
				examples[i].check(&m)
			}
		}
	}); err != nil {
		return nil, err
	}
	if lookup != nil {
		return nil, routes.Missing(lookup, errNoSmart)
	}
	input := jobs.EvalInput{Examples: make([]jobs.EvalExample, len(examples))}
	for i := range examples {
		of := examples[i].request.request
		input.Examples[i] = jobs.EvalExample{Want: examples[i].want(&m), Estimate: of.Estimate.Prompt, LastUser: of.LastUser()}
	}
	return q.StartJob(storage.JobEval, m.ID, input)
}

// check notes an expected slot that the smart model does not have.
func (l *labelled) check(m *storage.SmartModel) {
	switch {
	case l.slot.Set() && int(l.slot.Value) >= len(m.Slots):
		l.place.Report(validate.ValueError, llmedit.TextNoSuchSlot, "slot")
	case l.label.Set() && l.want(m) < 0:
		l.place.Report(validate.ValueError, textOneLabel, "label")
	}
}

// want returns the index of the expected slot; -1 when no slot, or more than one, has its label.
func (l *labelled) want(m *storage.SmartModel) int {
	if l.slot.Set() {
		return int(l.slot.Value)
	}
	found := -1
	for i, slot := range m.Slots {
		if slot.Label != l.label.Value {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}
