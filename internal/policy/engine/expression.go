package engine

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"
)

// Limits of expressions. They hold a hostile or careless policy to a small part of the gateway's time (attack M20).
// Honest conditions stay far below. maxEvaluation covers all expressions of one call together. The cost limit only
// counts steps, and nobody has measured how long some of them take, so maxEvaluation stops them by time.
const (
	maxExpression    = 4096 // characters
	maxNodes         = 4096 // of the syntax tree, with macros expanded
	maxParserDepth   = 64
	maxNestedLoops   = 2
	maxRegexProgram  = 1000 // instructions
	maxRange         = 1000 // elements of lists.range
	maxPrecision     = 64   // digits of string formatting
	costLimit        = 1_000_000
	interruptEvery   = 100                    // steps of loops between looks at the context
	maxEvaluation    = 250 * time.Millisecond // of all conditions of one call, or one item of a list
	maxList          = time.Second            // of all conditions of one list
	maxSyntaxErrors  = 10                     // after which the parser gives up
	placeholderError = "the expression is not valid"
)

// evaluationTime and listTime are maxEvaluation and maxList, for tests to change.
var (
	evaluationTime = maxEvaluation
	listTime       = maxList
)

// environment holds the environment for compiling all expressions. It is built once per process.
var environment = sync.OnceValue(func() *cel.Env {
	env, err := cel.NewEnv(
		cel.Variable("request", cel.DynType),
		cel.Variable("R", cel.DynType),
		cel.Variable("P", cel.DynType),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.EnableIdentifierEscapeSyntax(),
		ext.Strings(ext.StringsMaxPrecision(maxPrecision)), ext.Sets(), ext.Lists(ext.ListsMaxRangeSize(maxRange)), ext.Math(),
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ParserRecursionLimit(maxParserDepth),
		cel.ParserErrorRecoveryLimit(maxSyntaxErrors),
		cel.ExpressionNodeLimit(maxNodes),
		cel.RegexProgramSizeLimit(maxRegexProgram),
		cel.ASTValidators(
			cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(),
			cel.ValidateComprehensionNestingLimit(maxNestedLoops),
		),
	)
	if err != nil {
		panic(fmt.Sprintf("building the environment of expressions: %v", err)) // the options are fixed, and a test builds it
	}
	return env
})

// Unknown parts of a request in lists: the arguments. For a template, the resource is unknown too.
var (
	unknownArguments = []*cel.AttributePatternType{
		cel.AttributePattern("request").QualString("resource").QualString("attr"),
		cel.AttributePattern("R").QualString("attr"),
	}
	unknownItem = append([]*cel.AttributePatternType{cel.AttributePattern("request").QualString("action")}, unknownArguments...)
)

// expression is a compiled expression. It is immutable and safe for concurrent use.
type expression struct {
	text    string
	reads   reads
	bounded bool // the cost is bounded by its own length, so that it is not counted
	program cel.Program
	// partial evaluates with unknown parts. It is nil when nothing that the expression reads is ever unknown.
	partial cel.Program
}

// fault describes a mistake in an expression. Its line and column count from 1, and are 0 for a mistake without a
// place.
type fault struct {
	message      string
	line, column int
}

// compileExpression compiles a text. It returns all mistakes at once.
func compileExpression(text string) (*expression, []fault) {
	if strings.TrimSpace(text) == "" {
		return nil, []fault{{message: "an expression must not be empty", line: 1, column: 1}}
	}
	env := environment()
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		var faults []fault
		for _, e := range issues.Errors() {
			f := fault{message: e.Message}
			if e.Location != nil && e.Location.Line() > 0 {
				f.line, f.column = e.Location.Line(), e.Location.Column()+1
			}
			faults = append(faults, f)
		}
		if len(faults) == 0 {
			faults = []fault{{message: placeholderError}}
		}
		return nil, faults
	}
	if t := checked.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, []fault{{message: fmt.Sprintf("must be true or false, and is of type %s", t), line: 1, column: 1}}
	}
	tree := checked.NativeRep()
	e := &expression{text: text, reads: readsOf(tree.Expr()), bounded: bounded(tree.Expr())}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if !e.bounded {
		var counted costs
		options = append(options, cel.CustomDecoratorV2(counted.guarded), cel.CostTracking(&counted), cel.CostLimit(costLimit))
	}
	if e.reads.loops {
		options = append(options, cel.InterruptCheckFrequency(interruptEvery))
	}
	var err error
	if e.program, err = env.Program(checked, options...); err == nil && e.reads.unknowable() {
		e.partial, err = env.Program(checked, append(options, cel.EvalOptions(cel.OptPartialEval))...)
	}
	if err != nil {
		return nil, []fault{{message: err.Error(), line: 1, column: 1}}
	}
	return e, nil
}
