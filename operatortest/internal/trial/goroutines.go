package trial

import (
	"bytes"
	"fmt"
	"regexp"
	"runtime/pprof"
	"strconv"
	"strings"
)

// instanceLabel is the key of the profiler label of an operator's goroutines. A goroutine inherits the label from the
// one that starts it.
const instanceLabel = "operatortest"

// labelled counts the goroutines with the same stack and the same label.
type labelled struct {
	label, stack string
	count        int
}

var (
	countOf = regexp.MustCompile(`^(\d+) @`)
	labelOf = regexp.MustCompile(`(?m)^# labels: .*"` + instanceLabel + `":("(?:[^"\\]|\\.)*")`)
)

// allGoroutines returns this process's goroutines. It reads them from the text of the profile, which shows their labels.
func allGoroutines() ([]labelled, error) {
	profile := &bytes.Buffer{}
	if err := pprof.Lookup("goroutine").WriteTo(profile, 1); err != nil {
		return nil, fmt.Errorf("write the profile of all goroutines: %w", err)
	}
	_, records, _ := strings.Cut(profile.String(), "\n")
	var found []labelled
	for record := range strings.SplitSeq(records, "\n\n") {
		counted := countOf.FindStringSubmatch(record)
		if counted == nil {
			continue
		}
		made := labelled{stack: record}
		made.count, _ = strconv.Atoi(counted[1])
		if label := labelOf.FindStringSubmatch(record); label != nil {
			made.label, _ = strconv.Unquote(label[1])
		}
		found = append(found, made)
	}
	return found, nil
}
