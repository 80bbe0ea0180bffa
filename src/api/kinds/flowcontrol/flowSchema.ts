/** FlowSchema and PriorityLevelConfiguration (L1). Upstream: pkg/registry/flowcontrol, pkg/apis/flowcontrol/{v1/defaults,validation} (v1.36). */
import type { FlowSchema, PriorityLevelConfiguration } from '#api/gen/types/flowcontrol.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateNonNegative } from '#api/machinery/objectMeta'
import { ageColumn, integer, nameColumn, none, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, oneOf, statusStrategy } from '../rules.ts'

const group = 'flowcontrol.apiserver.k8s.io'
const maxPrecedence = 10_000

export const flowSchema = defineKind<FlowSchema>({
  group,
  kind: 'FlowSchema',
  columns: [
    nameColumn,
    text('PriorityLevel', (obj) => obj.spec?.priorityLevelConfiguration?.name ?? ''),
    integer('MatchingPrecedence', (obj) => obj.spec?.matchingPrecedence),
    text('DistinguisherMethod', (obj) => obj.spec?.distinguisherMethod?.type ?? none),
    ageColumn,
    text('MissingPL', (obj) => (obj.status?.conditions ?? []).find((condition) => condition.type === 'Dangling')?.status ?? '?'),
  ],
  defaults(obj) {
    obj.spec ??= { priorityLevelConfiguration: { name: '' } }
    obj.status ??= {}
    obj.spec.matchingPrecedence ||= 1000
  },
  prepareForCreate: ({ obj }) => dropStatus(obj),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => schemaFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, path }) => schemaFaults(obj, path.child('spec')),
  status: statusStrategy<FlowSchema>(),
})

export const priorityLevelConfiguration = defineKind<PriorityLevelConfiguration>({
  group,
  kind: 'PriorityLevelConfiguration',
  columns: [
    nameColumn,
    text('Type', (obj) => obj.spec?.type ?? ''),
    text('NominalConcurrencyShares', (obj) => obj.spec?.limited?.nominalConcurrencyShares ?? none),
    text('Queues', (obj) => obj.spec?.limited?.limitResponse?.queuing?.queues ?? none),
    text('HandSize', (obj) => obj.spec?.limited?.limitResponse?.queuing?.handSize ?? none),
    text('QueueLengthLimit', (obj) => obj.spec?.limited?.limitResponse?.queuing?.queueLengthLimit ?? none),
    ageColumn,
  ],
  defaults(obj) {
    obj.spec ??= { type: '' }
    obj.status ??= {}
    if (obj.spec.exempt) {
      obj.spec.exempt.nominalConcurrencyShares ??= 0
      obj.spec.exempt.lendablePercent ??= 0
    }
    if (!obj.spec.limited) return
    obj.spec.limited.nominalConcurrencyShares ??= 30
    obj.spec.limited.lendablePercent ??= 0
    const queuing = obj.spec.limited.limitResponse?.queuing
    if (!queuing) return
    queuing.queues ||= 64
    queuing.handSize ||= 8
    queuing.queueLengthLimit ||= 50
  },
  prepareForCreate: ({ obj }) => dropStatus(obj),
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => levelFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, path }) => levelFaults(obj, path.child('spec')),
  status: statusStrategy<PriorityLevelConfiguration>(),
})

function schemaFaults({ spec, metadata }: FlowSchema, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const precedence = spec.matchingPrecedence ?? 0
  if (precedence <= 0) errors.push(fieldError.invalid(path.child('matchingPrecedence'), precedence, 'must be a positive value'))
  if (precedence > maxPrecedence) errors.push(fieldError.invalid(path.child('matchingPrecedence'), precedence, `must not be greater than ${maxPrecedence}`))
  if (precedence === 1 && metadata.name !== 'exempt')
    errors.push(fieldError.invalid(path.child('matchingPrecedence'), precedence, "only the schema named 'exempt' may have matchingPrecedence 1"))
  if (spec.distinguisherMethod) errors.push(...oneOf(spec.distinguisherMethod.type, ['ByNamespace', 'ByUser'], path.child('distinguisherMethod', 'type')))
  if (!spec.priorityLevelConfiguration?.name)
    errors.push(fieldError.required(path.child('priorityLevelConfiguration', 'name'), 'must reference a priority level'))
  return errors
}

function levelFaults({ spec }: PriorityLevelConfiguration, path: FieldPath): FieldError[] {
  const errors = oneOf(spec.type, ['Exempt', 'Limited'], path.child('type'))
  if (spec.type === 'Exempt' && spec.limited) errors.push(fieldError.forbidden(path.child('limited'), 'must be nil if the type is not Limited'))
  if (spec.type !== 'Limited') return errors
  if (!spec.limited) return [...errors, fieldError.required(path.child('limited'), 'must not be empty when type is Limited')]
  const at = path.child('limited')
  errors.push(...validateNonNegative(spec.limited.nominalConcurrencyShares, at.child('nominalConcurrencyShares')))
  const response = spec.limited.limitResponse
  errors.push(...oneOf(response?.type, ['Queue', 'Reject'], at.child('limitResponse', 'type')))
  if (response?.type === 'Queue' && !response.queuing)
    errors.push(fieldError.required(at.child('limitResponse', 'queuing'), 'must not be empty if limited.limitResponse.type is Limited'))
  return errors
}
