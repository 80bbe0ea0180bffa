import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Event as CoreEvent } from '#api/gen/types/core.v1'
import type { Event } from '#api/gen/types/events.v1'
import { isQualifiedName } from '#api/machinery/names'
import { kindRules } from '#testing/kindRules'
import { coreEvent, event } from './event.ts'

const noName = (field: string) => isQualifiedName('').map((fault) => `${field}: Invalid value: "": ${fault}`)
const eventTime = '2026-01-01T00:00:00.000000Z'
const good: Event = {
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  metadata: { name: 'e', namespace: 'default' },
  eventTime,
  reportingController: 'example.com/c',
  reportingInstance: 'i',
  action: 'Do',
  reason: 'Because',
  type: 'Normal',
  regarding: { kind: 'Pod', namespace: 'default', name: 'p' },
}
const on = kindRules('EXP-04', event, good)
on.create([
  ['a good one', {}, []],
  ['no time', { eventTime: undefined }, ['eventTime: Required value']],
  ['no time, and nothing else', { eventTime: undefined, reportingController: '', action: '' }, ['eventTime: Required value']],
  ['no reporting controller', { reportingController: '' }, ['reportingController: Required value', ...noName('reportingController')]],
  ['no instance', { reportingInstance: '' }, ['reportingInstance: Required value']],
  ['a long action', { action: 'x'.repeat(129) }, ['action: Invalid value: "": can have at most 128 characters']],
  ['no reason', { reason: '' }, ['reason: Required value']],
  ['a long note', { note: 'x'.repeat(1025) }, ['message: Invalid value: "": can have at most 1024 characters']],
  ['an unknown type', { type: 'Loud' }, ['type: Invalid value: "": has invalid value: Loud']],
  ['a series of one', { series: { count: 1, lastObservedTime: eventTime } }, ['series.count: Invalid value: "": should be at least 2']],
  ['a series without a time', { series: { count: 2 } }, ['series.lastObservedTime: Required value']],
  ['an object of another namespace', { 'regarding.namespace': 'other' }, []],
  ['an object without a namespace, event in kube-system', { 'regarding.namespace': '', 'metadata.namespace': 'kube-system' }, []],
  [
    'an object without a namespace, event elsewhere',
    { 'regarding.namespace': '', 'metadata.namespace': 'x' },
    ['involvedObject.namespace: Invalid value: "": does not match event.namespace'],
  ],
  ['a count of the old form', { deprecatedCount: 1 }, ['count: Invalid value: "": needs to be unset']],
  ['a source of the old form', { deprecatedSource: { component: 'c' } }, ['source: Invalid value: "": needs to be unset']],
])
on.update([
  ['a series that grows', { series: { count: 3, lastObservedTime: eventTime } }, []],
  ['another note', { note: 'other' }, ['message: Invalid value: "other": field is immutable']],
  ['another count of the old form', { deprecatedCount: 2 }, ['count: Invalid value: 2: field is immutable']],
  ['the same time, written otherwise', { eventTime: '2026-01-01T01:00:00.000000+01:00' }, []],
])

const goodCore: CoreEvent = {
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name: 'e', namespace: 'default' },
  involvedObject: { kind: 'Pod', namespace: 'default', name: 'p' },
}
const onCore = kindRules('EXP-04', coreEvent, goodCore)
onCore.create([
  ['the old form asks for little', {}, []],
  [
    'a cluster-wide object elsewhere',
    { 'metadata.namespace': 'x', involvedObject: { kind: 'Node', name: 'n' } },
    ['involvedObject.namespace: Invalid value: "": does not match event.namespace'],
  ],
  [
    'a time of its own asks for the rest',
    { eventTime },
    [
      'reportingComponent: Required value',
      ...noName('reportingComponent'),
      'reportingInstance: Required value',
      'action: Required value',
      'reason: Required value',
    ],
  ],
  ['another namespace', { 'involvedObject.namespace': 'other' }, ['involvedObject.namespace: Invalid value: "other": does not match event.namespace']],
  [
    'a cluster-scoped object, core event in kube-system',
    { 'metadata.namespace': 'kube-system', involvedObject: { kind: 'Node', name: 'n' } },
    ['involvedObject.namespace: Invalid value: "": does not match event.namespace'],
  ],
])

test('API-04 Event: the older group takes any name that a path can hold', () => {
  assert.deepEqual(coreEvent.validateName?.('Foo_Bar.1', false), [])
  assert.deepEqual(coreEvent.validateName?.('a/b', false), ["may not contain '/'"])
})
