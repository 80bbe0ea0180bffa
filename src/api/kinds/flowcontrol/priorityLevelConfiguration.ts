/** PriorityLevelConfiguration (L1): a share of the server. Upstream: pkg/registry/flowcontrol, pkg/apis/flowcontrol/{v1/defaults,validation} (v1.36). */
import type {
  ExemptPriorityLevelConfiguration,
  LimitedPriorityLevelConfiguration,
  LimitResponse,
  PriorityLevelConfiguration,
  QueuingConfiguration,
} from '#api/gen/types/flowcontrol.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { ageColumn, nameColumn, none, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, resetMetadata, statusStrategy } from '../rules.ts'
import { mandatoryPriorityLevels } from './bootstrapObjects.ts'
import { conditionsFaults, fixedSpecFaults, flowcontrolGroup as group } from './conditions.ts'

const maxQueues = 10_000_000
/** How many bits of a hash there are to deal hands from. */
const maxHashBits = 60

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
  validate: ({ obj, path }) => objectFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, path }) => objectFaults(obj, path.child('spec')),
  status: statusStrategy<PriorityLevelConfiguration>({
    keepMetadata: resetMetadata,
    validateUpdate: ({ obj, path }) => conditionsFaults(obj.status?.conditions, path.child('status', 'conditions')),
  }),
})

function objectFaults(obj: PriorityLevelConfiguration, path: FieldPath): FieldError[] {
  return [...specFaults(obj, path), ...fixedSpecFaults(mandatoryPriorityLevels, obj, path)]
}

function specFaults({ spec, metadata }: PriorityLevelConfiguration, path: FieldPath): FieldError[] {
  const { type, limited, exempt } = spec
  const errors: FieldError[] = []
  if ((metadata.name === 'exempt') !== (type === 'Exempt'))
    errors.push(fieldError.invalid(path.child('type'), type, "type must be 'Exempt' if and only if the name is 'exempt'"))
  if (type === 'Exempt') {
    if (limited) errors.push(fieldError.forbidden(path.child('limited'), 'must be nil if the type is not Limited'))
    if (exempt) errors.push(...sharesFaults(exempt, path.child('exempt')))
  } else if (type === 'Limited') {
    if (exempt) errors.push(fieldError.forbidden(path.child('exempt'), 'must be nil if the type is Limited'))
    if (!limited) errors.push(fieldError.required(path.child('limited'), 'must not be empty when type is Limited'))
    else errors.push(...limitedFaults(limited, path.child('limited')))
  } else errors.push(fieldError.notSupported(path.child('type'), type, ['Exempt', 'Limited']))
  return errors
}

function limitedFaults(limited: LimitedPriorityLevelConfiguration, path: FieldPath): FieldError[] {
  const errors = [...sharesFaults(limited, path), ...responseFaults(limited.limitResponse, path.child('limitResponse'))]
  const borrowing = limited.borrowingLimitPercent
  if (borrowing !== undefined && borrowing < 0)
    errors.push(fieldError.invalid(path.child('borrowingLimitPercent'), borrowing, 'if specified, must be a non-negative integer'))
  return errors
}

function sharesFaults(
  { nominalConcurrencyShares: shares = 0, lendablePercent: lendable = 0 }: ExemptPriorityLevelConfiguration,
  path: FieldPath,
): FieldError[] {
  const errors: FieldError[] = []
  if (shares < 0) errors.push(fieldError.invalid(path.child('nominalConcurrencyShares'), shares, 'must be a non-negative integer'))
  if (lendable < 0 || lendable > 100) errors.push(fieldError.invalid(path.child('lendablePercent'), lendable, 'must be between 0 and 100, inclusive'))
  return errors
}

function responseFaults(response: LimitResponse | undefined, path: FieldPath): FieldError[] {
  const { type = '', queuing } = response ?? {}
  const at = path.child('queuing')
  if (type === 'Reject') return queuing ? [fieldError.forbidden(at, 'must be nil if limited.limitResponse.type is not Limited')] : []
  if (type !== 'Queue') return [fieldError.notSupported(path.child('type'), type, ['Queue', 'Reject'])]
  return queuing ? queuingFaults(queuing, at) : [fieldError.required(at, 'must not be empty if limited.limitResponse.type is Limited')]
}

function queuingFaults({ queues = 0, handSize = 0, queueLengthLimit = 0 }: QueuingConfiguration, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (queueLengthLimit <= 0) errors.push(fieldError.invalid(path.child('queueLengthLimit'), queueLengthLimit, 'must be positive'))
  if (queues <= 0) errors.push(fieldError.invalid(path.child('queues'), queues, 'must be positive'))
  else if (queues > maxQueues) errors.push(fieldError.invalid(path.child('queues'), queues, `must not be greater than ${maxQueues}`))
  const at = path.child('handSize')
  if (handSize <= 0) errors.push(fieldError.invalid(at, handSize, 'must be positive'))
  else if (handSize > queues) errors.push(fieldError.invalid(at, handSize, `should not be greater than queues (${queues})`))
  else if (Math.ceil(Math.log2(queues) * handSize) > maxHashBits) {
    const why = `required entropy bits of deckSize ${queues} and handSize ${handSize} should not be greater than ${maxHashBits}`
    errors.push(fieldError.invalid(at, handSize, why))
  }
  return errors
}
