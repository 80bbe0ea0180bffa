/**
 * CertificateSigningRequest (L1): the server fills in the requesting user, the spec never changes, and approval and signing have endpoints
 * of their own. Upstream: pkg/registry/certificates/certificates/strategy.go, pkg/apis/certificates/validation (v1.36).
 */
import type { CertificateSigningRequest } from '#api/gen/types/certificates.v1'
import { humanDuration } from '#api/machinery/duration'
import type { Frozen } from '#api/machinery/meta'
import { formatTime } from '#base/time'
import { ageColumn, nameColumn, none, text } from '../columns.ts'
import { defineKind, type UpdateInput } from '../defineKind.ts'
import { dropStatus, keepFields } from '../rules.ts'
import { validateRequest, validateRequestUpdate } from './requestRules.ts'

type Request = CertificateSigningRequest

const decisions = ['Approved', 'Denied']

export const certificateSigningRequest = defineKind<Request>({
  group: 'certificates.k8s.io',
  kind: 'CertificateSigningRequest',
  generation: false,
  // The spec never changes, so no manager owns it.
  resetFields: ['spec', 'status'],
  // Upstream accepts any name.
  validateName: () => [],
  columns: [
    nameColumn,
    ageColumn,
    text('SignerName', (obj) => obj.spec?.signerName ?? none),
    text('Requestor', (obj) => obj.spec?.username ?? ''),
    text('RequestedDuration', (obj) => (obj.spec?.expirationSeconds === undefined ? none : humanDuration(obj.spec.expirationSeconds * 1000))),
    text('Condition', conditionText),
  ],
  selectableFields: { 'spec.signerName': (obj) => obj.spec?.signerName ?? '' },
  defaults(obj) {
    obj.spec ??= {} as Request['spec']
    obj.status ??= {}
  },
  prepareForCreate({ obj, context }) {
    dropStatus(obj)
    const { name, uid, groups = [], extra } = context.user ?? {}
    const { username: _, uid: __, groups: ___, extra: ____, ...asked } = obj.spec
    obj.spec = {
      ...asked,
      ...(name ? { username: name } : {}),
      ...(uid ? { uid } : {}),
      ...(groups.length > 0 ? { groups: [...groups] } : {}),
      ...(extra ? { extra: Object.fromEntries(Object.entries(extra).map(([key, values]) => [key, [...values]])) } : {}),
    }
  },
  prepareForUpdate: ({ obj, old }) => keepFields(obj, old, ['spec', 'status']),
  validate: ({ obj, path }) => validateRequest(obj, undefined, path),
  validateUpdate: (input) => validateRequestUpdate(input, {}),
  status: {
    resetFields: ['spec', 'status.conditions'],
    prepareForUpdate(input) {
      keepFields(input.obj, input.old, ['spec'])
      for (const type of decisions) keepConditions(input, type)
      fillTimes(input)
    },
    validateUpdate: (input) => validateRequestUpdate(input, { mayCertify: true }),
  },
  subresources: {
    approval: {
      resetFields: ['spec', 'status.certificate'],
      prepareForUpdate(input) {
        const { obj, old } = input
        keepFields(obj, old, ['spec'])
        const { certificate: _, ...status } = obj.status ?? {}
        obj.status = { ...status, ...(old.status?.certificate ? { certificate: old.status.certificate } : {}) }
        fillTimes(input)
      },
      validateUpdate: (input) => validateRequestUpdate(input, { mayDecide: true }),
    },
  },
})

/** As many conditions of a type as before are the ones from before: who signs cannot reword a decision. */
function keepConditions({ obj, old }: UpdateInput<Request>, type: string): void {
  const before = (old.status?.conditions ?? []).filter((condition) => condition.type === type)
  const conditions = obj.status?.conditions ?? []
  if (conditions.filter((condition) => condition.type === type).length !== before.length) return
  let next = 0
  for (const [i, condition] of conditions.entries()) {
    const kept = condition.type === type ? before[next++] : undefined
    if (kept) conditions[i] = { ...kept }
  }
}

/** Conditions written without times get the current time; lastTransitionTime changes only with the status. */
function fillTimes({ obj, old, context }: UpdateInput<Request>): void {
  const now = formatTime(context.nowMs)
  for (const condition of obj.status?.conditions ?? []) {
    condition.lastUpdateTime ??= now
    const same = old.status?.conditions?.find(
      ({ type, status, lastTransitionTime }) => type === condition.type && status === condition.status && lastTransitionTime,
    )
    condition.lastTransitionTime ??= same?.lastTransitionTime ?? now
  }
}

function conditionText(obj: Frozen<Request>): string {
  const types = new Set((obj.status?.conditions ?? []).map((condition) => condition.type))
  const decision = types.has('Denied') ? 'Denied' : types.has('Approved') ? 'Approved' : 'Pending'
  return `${decision}${types.has('Failed') ? ',Failed' : ''}${obj.status?.certificate ? ',Issued' : ''}`
}
