/**
 * Event (L1): one stored object with two shapes, core/v1 and events.k8s.io/v1. Stored as core/v1, as upstream does.
 * Upstream: pkg/registry/core/event, pkg/apis/events/v1/conversion.go, pkg/apis/core/validation/events.go (v1.36).
 */
import type { Event as CoreEvent } from '#api/gen/types/core.v1'
import type { Event } from '#api/gen/types/events.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isQualifiedName, nameIsPathSegment } from '#api/machinery/names'
import { immutableMessage } from '#api/machinery/objectMeta'
import { ageOf } from '#api/tables/table'
import { emptyMap } from '#base/bareMap'
import { parseTime } from '#base/time'
import { type Column, defineKind, type KindStrategy } from '../defineKind.ts'
import { faults } from '../rules.ts'
import { utf8Length } from './data.ts'

const eventsGroup = 'events.k8s.io'

/** Event in the core group, which is the stored form. */
export const coreEvent = defineKind<CoreEvent>({
  group: '',
  kind: 'Event',
  generation: false,
  allowCreateOnUpdate: true,
  // The older group asks no more of a name than that a path can hold it.
  validateName: nameIsPathSegment,
  columns: eventColumns((obj: Frozen<CoreEvent>) => obj),
  selectableFields: {
    ...eventFields((obj: Frozen<CoreEvent>) => obj, 'involvedObject', 'reportingComponent'),
    source: (obj) => obj.source?.component || obj.reportingComponent || '',
  },
  validate: ({ obj, path }) => legacyFaults(obj, 'reportingComponent', path),
  validateUpdate: ({ obj, path }) => legacyFaults(obj, 'reportingComponent', path),
})

/** Event in events.k8s.io: the same objects, other names, stricter rules. */
export const event: KindStrategy<Event> = defineKind<Event>({
  group: eventsGroup,
  kind: 'Event',
  generation: false,
  allowCreateOnUpdate: true,
  ownShape: {
    fromStored: (obj) => eventOf(obj as unknown as Frozen<CoreEvent>) as unknown as KubeObject,
    toStored: (obj) => coreEventOf(obj as unknown as Frozen<Event>) as unknown as KubeObject,
  },
  columns: eventColumns(coreEventOf),
  selectableFields: eventFields(coreEventOf, 'regarding', 'reportingController'),
  validate: ({ obj, path }) => [...legacyFaults(coreEventOf(obj), 'reportingController', path), ...strictFaults(obj, path)],
  validateUpdate: ({ obj, old, path }) => [
    ...legacyFaults(coreEventOf(obj), 'reportingController', path),
    ...(semanticEqual(obj.series, old.series) ? [] : seriesFaults(obj, path)),
    ...changeFaults(coreEventOf(obj), coreEventOf(old), path),
  ],
})

/** Only an event's series may change. Errors name the stored fields, except for the reporter. */
function changeFaults(now: CoreEvent, before: CoreEvent, path: FieldPath): FieldError[] {
  const same = (field: (typeof fixedFields)[number]) =>
    semanticEqual(now[field], before[field]) || (field === 'eventTime' && parseTime(now.eventTime ?? '') === parseTime(before.eventTime ?? ''))
  return fixedFields
    .filter((field) => !same(field))
    .map((field) => fieldError.invalid(path.child(field === 'reportingComponent' ? 'reportingController' : field), now[field], immutableMessage))
}

const fixedFields = [
  ...(['involvedObject', 'reason', 'message', 'source', 'firstTimestamp', 'lastTimestamp', 'count', 'type', 'eventTime', 'action'] as const),
  ...(['related', 'reportingComponent', 'reportingInstance'] as const),
] as const

/** What events.k8s.io calls otherwise than what is stored. */
const storedNames: Readonly<Record<string, string>> = {
  regarding: 'involvedObject',
  note: 'message',
  reportingController: 'reportingComponent',
  deprecatedCount: 'count',
  deprecatedFirstTimestamp: 'firstTimestamp',
  deprecatedLastTimestamp: 'lastTimestamp',
  deprecatedSource: 'source',
}
const shownNames: Readonly<Record<string, string>> = Object.fromEntries(Object.entries(storedNames).map(([shown, stored]) => [stored, shown]))

/** The stored shape of an events.k8s.io Event. */
export function coreEventOf(from: Frozen<Event>): CoreEvent {
  const core = renamed(from, storedNames)
  core.apiVersion = 'v1'
  core.involvedObject ??= {}
  core.source ??= {}
  return core as unknown as CoreEvent
}

/** The events.k8s.io shape of a stored Event. */
export function eventOf(from: Frozen<CoreEvent>): Event {
  const shown = renamed(from, shownNames)
  shown.apiVersion = `${eventsGroup}/v1`
  shown.eventTime ??= null
  shown.regarding ??= {}
  shown.deprecatedSource ??= {}
  return shown as unknown as Event
}

/** A copy with some fields under other names, without those that are not set. */
function renamed(from: object, names: Readonly<Record<string, string>>): Record<string, unknown> {
  const copy: Record<string, unknown> = emptyMap()
  for (const [name, value] of Object.entries(from)) if (value !== undefined) copy[names[name] ?? name] = value
  return copy
}

function eventColumns<T>(core: (obj: Frozen<T>) => Frozen<CoreEvent>): Column<T>[] {
  const column = (name: string, value: (obj: Frozen<CoreEvent>, nowMs: number) => string | number, priority = 0, type: 'string' | 'integer' = 'string') => ({
    name,
    type,
    priority,
    value: (obj: Frozen<T>, nowMs: number) => value(core(obj), nowMs),
  })
  return [
    column('Last Seen', (obj, nowMs) => ageOf(lastSeen(obj), nowMs)),
    column('Type', (obj) => obj.type ?? ''),
    column('Reason', (obj) => obj.reason ?? ''),
    column('Object', ({ involvedObject: on }) => (on?.name ? `${(on.kind ?? '').toLowerCase()}/${on.name}` : (on?.kind ?? '').toLowerCase())),
    column('Subobject', (obj) => obj.involvedObject?.fieldPath ?? '', 1),
    column('Source', sourceText, 1),
    column('Message', (obj) => (obj.message ?? '').trim()),
    column('First Seen', (obj, nowMs) => ageOf(obj.firstTimestamp ?? obj.eventTime, nowMs), 1),
    column('Count', (obj) => obj.series?.count ?? (obj.count || 1), 1, 'integer'),
    { ...column('Name', (obj) => obj.metadata.name ?? '', 1), format: 'name' },
  ]
}

function lastSeen(obj: Frozen<CoreEvent>): string | undefined {
  return obj.series?.lastObservedTime ?? obj.lastTimestamp ?? obj.firstTimestamp ?? obj.eventTime
}

function sourceText(obj: Frozen<CoreEvent>): string {
  const component = obj.source?.component || obj.reportingComponent || ''
  const instance = obj.source?.host || obj.reportingInstance || ''
  return instance ? `${component}, ${instance}` : component
}

/** Each group selects by its own names of the fields. @param about the field for the object that the event is about */
function eventFields<T>(core: (obj: Frozen<T>) => Frozen<CoreEvent>, about: string, reporter: string): Record<string, (obj: Frozen<T>) => string> {
  const involved = (field: 'kind' | 'namespace' | 'name' | 'uid' | 'apiVersion' | 'resourceVersion' | 'fieldPath') => (obj: Frozen<T>) =>
    core(obj).involvedObject?.[field] ?? ''
  return {
    [`${about}.kind`]: involved('kind'),
    [`${about}.namespace`]: involved('namespace'),
    [`${about}.name`]: involved('name'),
    [`${about}.uid`]: involved('uid'),
    [`${about}.apiVersion`]: involved('apiVersion'),
    [`${about}.resourceVersion`]: involved('resourceVersion'),
    [`${about}.fieldPath`]: involved('fieldPath'),
    reason: (obj) => core(obj).reason ?? '',
    [reporter]: (obj) => core(obj).reportingComponent ?? '',
    type: (obj) => core(obj).type ?? '',
  }
}

/** The rules for every event. Events about cluster-scoped objects are in `default`; an event of the older form is in the namespace of its object. */
function legacyFaults(obj: CoreEvent, reporterField: string, path: FieldPath): FieldError[] {
  const [about, own] = [obj.involvedObject?.namespace ?? '', obj.metadata.namespace ?? '']
  const fits = obj.eventTime ? about !== '' || own === 'default' || own === 'kube-system' : about === '' ? own === '' || own === 'default' : about === own
  const errors = fits ? [] : [fieldError.invalid(path.child('involvedObject', 'namespace'), about, 'does not match event.namespace')]
  return obj.eventTime ? [...errors, ...reportFaults(obj, reporterField, path)] : errors
}

/** Fields that an event with eventTime must have in both groups: reporter, object, action and reason. */
function reportFaults(obj: CoreEvent, reporterField: string, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const reporter = obj.reportingComponent ?? ''
  if (!reporter) errors.push(fieldError.required(path.child(reporterField)))
  errors.push(...faults(path.child(reporterField), reporter, isQualifiedName(reporter)))
  for (const field of ['reportingInstance', 'action', 'reason'] as const) {
    const value = obj[field] ?? ''
    if (!value) errors.push(fieldError.required(path.child(field)))
    else if (utf8Length(value) > 128) errors.push(fieldError.invalid(path.child(field), '', 'can have at most 128 characters'))
  }
  if (utf8Length(obj.message ?? '') > 1024) errors.push(fieldError.invalid(path.child('message'), '', 'can have at most 1024 characters'))
  return errors
}

function seriesFaults({ series }: Event, path: FieldPath): FieldError[] {
  if (!series) return []
  return [
    ...((series.count ?? 0) < 2 ? [fieldError.invalid(path.child('series.count'), '', 'should be at least 2')] : []),
    ...(series.lastObservedTime ? [] : [fieldError.required(path.child('series.lastObservedTime'))]),
  ]
}

/** The newer group takes nothing of the older form. */
function strictFaults(obj: Event, path: FieldPath): FieldError[] {
  const errors = [...seriesFaults(obj, path), ...(obj.eventTime ? [] : [fieldError.required(path.child('eventTime'))])]
  if (obj.type !== 'Normal' && obj.type !== 'Warning') errors.push(fieldError.invalid(path.child('type'), '', `has invalid value: ${obj.type ?? ''}`))
  const old: readonly [string, unknown][] = [
    ['firstTimestamp', obj.deprecatedFirstTimestamp],
    ['lastTimestamp', obj.deprecatedLastTimestamp],
    ['count', obj.deprecatedCount],
    ['source', obj.deprecatedSource?.component || obj.deprecatedSource?.host],
  ]
  for (const [field, value] of old) if (value) errors.push(fieldError.invalid(path.child(field), '', 'needs to be unset'))
  return errors
}
