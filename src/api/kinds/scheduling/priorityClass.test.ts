import type { PriorityClass } from '#api/gen/types/scheduling.v1'
import { kindRules } from '#testing/kindRules'
import { priorityClass } from './priorityClass.ts'

const good: PriorityClass = { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name: 'high' }, value: 1000 }
const on = kindRules('EXP-04', priorityClass, good)
const reserved = "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: "
on.defaults('it preempts', {}, { preemptionPolicy: 'PreemptLowerPriority' })
on.create([
  ['a good one', {}, []],
  ['too high', { value: 1_000_000_001 }, ['value: Forbidden: maximum allowed value of a user defined priority is 1000000000']],
  ['a reserved name', { 'metadata.name': 'system-mine' }, [`${reserved}system-mine is not a known system priority class`]],
  [
    'a system class with another value',
    { 'metadata.name': 'system-node-critical' },
    [`${reserved}value of system-node-critical PriorityClass must be 2000001000`],
  ],
  [
    'a system class as the global default',
    { 'metadata.name': 'system-node-critical', value: 2_000_001_000, globalDefault: true },
    [`${reserved}globalDefault of system-node-critical PriorityClass must be false`],
  ],
  ['an unknown policy', { preemptionPolicy: 'Maybe' }, ['preemptionPolicy: Unsupported value: "Maybe": supported values: "PreemptLowerPriority", "Never"']],
])
on.update([
  ['the text may change', { description: 'x' }, []],
  ['the value', { value: 5 }, ['value: Forbidden: may not be changed in an update.']],
  ['the policy', { preemptionPolicy: 'Never' }, ['preemptionPolicy: Invalid value: "Never": field is immutable']],
])
on.cells('all of it', {}, { Name: 'high', Value: 1000, 'Global-Default': false, PreemptionPolicy: '' })
