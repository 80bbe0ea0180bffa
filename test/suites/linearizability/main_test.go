package main

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

func at(start, end int64, one operation) operation {
	one.Key, one.Start, one.End = "a", start, end
	return one
}

func TestHistories(t *testing.T) {
	create := at(1, 2, operation{Op: "create", Value: "1", Answer: "ok"})
	put := at(3, 4, operation{Op: "put", Value: "2", Answer: "ok"})
	lost := at(3, 4, operation{Op: "put", Value: "2", Answer: "unknown"})
	read := func(start, end int64, found string) operation {
		return at(start, end, operation{Op: "read", Answer: "ok", Found: found})
	}
	cas := func(from, value, answer string) operation {
		return at(5, 6, operation{Op: "cas", From: from, Value: value, Answer: answer})
	}
	remove := at(5, 6, operation{Op: "delete", Answer: "ok"})
	for name, one := range map[string]struct {
		history []operation
		want    porcupine.CheckResult
	}{
		"the read sees the newest write":                   {[]operation{create, put, read(5, 6, "2")}, porcupine.Ok},
		"the read is stale":                                {[]operation{create, put, read(5, 6, "1")}, porcupine.Illegal},
		"the read runs during the write":                   {[]operation{create, put, read(3, 6, "1")}, porcupine.Ok},
		"reads go back in time":                            {[]operation{create, put, read(5, 6, "2"), read(7, 8, "1")}, porcupine.Illegal},
		"a write of unknown outcome is seen late":          {[]operation{create, lost, read(5, 6, "1"), read(7, 8, "2")}, porcupine.Ok},
		"a write of unknown outcome is never seen":         {[]operation{create, lost, read(5, 6, "1")}, porcupine.Ok},
		"a write of unknown outcome is seen and gone":      {[]operation{create, lost, read(5, 6, "2"), read(7, 8, "1")}, porcupine.Illegal},
		"an update is lost":                                {[]operation{create, put, cas("1", "3", "ok")}, porcupine.Illegal},
		"a conflict for the value that is there":           {[]operation{create, put, cas("2", "3", "conflict")}, porcupine.Illegal},
		"a conflict for a value that was replaced":         {[]operation{create, put, cas("1", "3", "conflict")}, porcupine.Ok},
		"a create is refused, and its object is there":     {[]operation{at(1, 2, operation{Op: "create", Value: "1", Answer: "exists"}), read(3, 4, "1")}, porcupine.Illegal},
		"a deleted object is read":                         {[]operation{create, remove, read(7, 8, "1")}, porcupine.Illegal},
		"the object is missing after its deletion":         {[]operation{create, remove, read(7, 8, "")}, porcupine.Ok},
		"a write to a missing object changes nothing":      {[]operation{at(1, 2, operation{Op: "put", Value: "1", Answer: "missing"}), read(3, 4, "")}, porcupine.Ok},
		"a write to a missing object is said to have been": {[]operation{at(1, 2, operation{Op: "put", Value: "1", Answer: "ok"})}, porcupine.Illegal},
	} {
		if got := check(one.history, time.Minute); got != one.want {
			t.Errorf("%s: got %s, want %s", name, got, one.want)
		}
	}
}
