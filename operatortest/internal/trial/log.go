package trial

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
)

const (
	// logLevel is the verbosity of the log that the kit searches. client-go logs the bodies of requests at level 8 and
	// above.
	logLevel = 5
	// maxLog is the largest number of bytes that the kit keeps from the end of a log.
	maxLog = 8 << 20
	// lastLines is the number of a log's last lines that a failure shows; lastBytes limits their total length.
	lastLines = 10
	lastBytes = 8 << 10
)

// operatorLog is what one operator logs: through the logger in its context, and to files.
type operatorLog struct {
	mu    sync.Mutex
	text  []byte
	files []*os.File
	// dead returns true if the operator counts as killed. Its goroutines in the test process may continue to log.
	dead func() bool
	// closed means that nothing is recorded any more.
	closed bool
}

// logger returns a logger that writes to the log, and also to klog's global logger, where the operator's lines would go
// otherwise.
func (l *operatorLog) logger() logr.Logger {
	write := func(prefix, line string) { l.write(strings.TrimSpace(prefix + " " + line)) }
	sinks := tee{funcr.New(write, funcr.Options{Verbosity: logLevel}).GetSink()}
	if global := klog.Background().GetSink(); global != nil { // nil for logr.Discard
		sinks = append(sinks, global)
	}
	return logr.New(sinks)
}

func (l *operatorLog) write(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.dead() {
		return
	}
	if len(l.text)+len(line) > maxLog {
		l.text = l.text[len(l.text)/2:]
	}
	l.text = append(append(l.text, line...), '\n')
}

// follow adds a log file. It keeps the file open, so the operator may remove it later.
func (l *operatorLog) follow(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the operator's log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return file.Close()
	}
	l.files = append(l.files, file)
	return nil
}

// String returns what was logged so far: the end of it, if the log is longer than maxLog.
func (l *operatorLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	logged := &strings.Builder{}
	logged.Write(l.text)
	for _, file := range l.files {
		info, err := file.Stat()
		if err == nil {
			begin := max(0, info.Size()-maxLog)
			_, err = io.Copy(logged, io.NewSectionReader(file, begin, info.Size()-begin))
		}
		if err != nil {
			fmt.Fprintf(logged, "(read the operator's log: %v)\n", err)
		}
	}
	return logged.String()
}

// exists reports whether the operator has logged something, or has handed over a file, even an empty one.
func (l *operatorLog) exists() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.text)+len(l.files) > 0
}

// detail matches the lines with a verbosity of 2 or more, in the format of [operatorLog.logger].
var detail = regexp.MustCompile(`(^| )"level"=[2-9] "msg"=`)

// lastLines returns the end of the log without details, for errors, or "" if nothing was logged.
func (l *operatorLog) lastLines() string {
	text := strings.TrimSpace(l.String())
	text = text[max(0, len(text)-lastBytes):]
	lines := slices.DeleteFunc(strings.Split(text, "\n"), detail.MatchString)
	return strings.Join(lines[max(0, len(lines)-lastLines):], "\n")
}

// close stops recording, and closes the files.
func (l *operatorLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, file := range l.files {
		_ = file.Close() // it was only read
	}
	l.files = nil
}

// tee passes log entries to several sinks: errors to all of them, other messages to those that are enabled for their
// level.
type tee []logr.LogSink

// Init implements logr.LogSink.
func (t tee) Init(logr.RuntimeInfo) {} // the sinks are initialised already

// Enabled implements logr.LogSink.
func (t tee) Enabled(level int) bool {
	for _, sink := range t {
		if sink.Enabled(level) {
			return true
		}
	}
	return false
}

// Info implements logr.LogSink.
func (t tee) Info(level int, message string, pairs ...any) {
	for _, sink := range t {
		if sink.Enabled(level) {
			sink.Info(level, message, pairs...)
		}
	}
}

// Error implements logr.LogSink.
func (t tee) Error(err error, message string, pairs ...any) {
	for _, sink := range t {
		sink.Error(err, message, pairs...)
	}
}

// WithValues implements logr.LogSink.
func (t tee) WithValues(pairs ...any) logr.LogSink {
	return t.each(func(sink logr.LogSink) logr.LogSink { return sink.WithValues(pairs...) })
}

// WithName implements logr.LogSink.
func (t tee) WithName(name string) logr.LogSink {
	return t.each(func(sink logr.LogSink) logr.LogSink { return sink.WithName(name) })
}

func (t tee) each(change func(logr.LogSink) logr.LogSink) logr.LogSink {
	changed := make(tee, len(t))
	for i, sink := range t {
		changed[i] = change(sink)
	}
	return changed
}
