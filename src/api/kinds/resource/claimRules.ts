/** What a claim asks for (L1): requests, constraints between them, configurations. Upstream: pkg/apis/resource/validation (v1.36). */
import type { DeviceClaim, DeviceConstraint, DeviceRequest, DeviceSubRequest, ExactDeviceRequest, ResourceClaimSpec } from '#api/gen/types/resource.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { isDns1123Subdomain } from '#api/machinery/names'
import { faults } from '../rules.ts'
import {
  configurationFaults,
  fullyQualifiedNameFaults,
  labelFaults,
  listFaults,
  maxConfigs,
  selectorsFaults,
  setFaults,
  tolerationFaults,
} from './deviceRules.ts'

export const maxRequests = 32
const maxConstraints = 32
const maxAlternatives = 8
const modes = ['All', 'ExactCount']
const notARequest = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"

/** Default of a request: exactly one device. */
export function setClaimDefaults(spec: ResourceClaimSpec | undefined): void {
  for (const request of spec?.devices?.requests ?? [])
    for (const one of [request.exactly, ...(request.firstAvailable ?? [])]) {
      if (!one) continue
      one.allocationMode ||= 'ExactCount'
      if (one.allocationMode === 'ExactCount') one.count ||= 1
      for (const toleration of one.tolerations ?? []) toleration.operator ||= 'Equal'
    }
}

/** The faults of a claim; `stored`: its expressions were there before. */
export function validateClaimSpec(spec: ResourceClaimSpec | undefined, stored: boolean, path: FieldPath): FieldError[] {
  const claim = spec?.devices ?? {}
  const names = requestNames(claim)
  const at = path.child('devices')
  return [
    ...setFaults(
      claim.requests,
      maxRequests,
      (request, one) => requestFaults(request, stored, one),
      (request) => request.name,
      at.child('requests'),
    ),
    ...listFaults(claim.constraints, maxConstraints, (constraint, one) => constraintFaults(constraint, names, one), at.child('constraints')),
    ...listFaults(
      claim.config,
      maxConfigs,
      ({ requests, opaque }, one) => [...requestRefsFaults(requests, names, one.child('requests')), ...configurationFaults(opaque, stored, one)],
      at.child('config'),
    ),
  ]
}

/** Every request by its name, and every alternative as `request/alternative`. */
export function requestNames(claim: Frozen<DeviceClaim>): ReadonlySet<string> {
  const names = new Set<string>()
  for (const { name, firstAvailable } of claim.requests ?? []) {
    names.add(name)
    for (const one of firstAvailable ?? []) names.add(`${name}/${one.name}`)
  }
  return names
}

export function requestRefFaults(name: string, names: ReadonlySet<string>, path: FieldPath): FieldError[] {
  const segments = name.split('/')
  if (segments.length > 2) return [fieldError.invalid(path, name, notARequest)]
  const errors = segments.flatMap((segment) => labelFaults(segment, path))
  return names.has(name) ? errors : [...errors, fieldError.invalid(path, name, notARequest)]
}

export function requestRefsFaults(refs: readonly string[] | undefined, names: ReadonlySet<string>, path: FieldPath): FieldError[] {
  return setFaults(
    refs,
    maxRequests,
    (name, at) => requestRefFaults(name, names, at),
    (name) => name,
    path,
  )
}

function requestFaults({ name, exactly, firstAvailable }: DeviceRequest, stored: boolean, path: FieldPath): FieldError[] {
  const errors = labelFaults(name, path.child('name'))
  const check = (one: DeviceSubRequest, at: FieldPath) => [...labelFaults(one.name, at.child('name')), ...exactFaults(one, stored, at)]
  const one = 'exactly one of `exactly` or `firstAvailable` is required'
  const several = (firstAvailable?.length ?? 0) > 0
  if (exactly && several) return [...errors, fieldError.invalid(path, null, `${one}, but multiple fields are set`)]
  if (exactly) return [...errors, ...exactFaults(exactly, stored, path.child('exactly'))]
  if (!several) return [...errors, fieldError.required(path, one)]
  return [...errors, ...setFaults(firstAvailable, maxAlternatives, check, ({ name: alternative }) => alternative, path.child('firstAvailable'))]
}

function exactFaults(request: ExactDeviceRequest | DeviceSubRequest, stored: boolean, path: FieldPath): FieldError[] {
  const { deviceClassName: name, selectors, allocationMode: mode, count = 0, tolerations } = request
  const at = path.child('deviceClassName')
  const errors = name ? faults(at, name, isDns1123Subdomain(name)) : [fieldError.required(at)]
  errors.push(...selectorsFaults(selectors, stored, path.child('selectors')))
  if (mode === 'All') {
    if (count !== 0) errors.push(fieldError.invalid(path.child('count'), count, "must not be specified when allocationMode is 'All'"))
  } else if (mode === 'ExactCount') {
    if (count <= 0) errors.push(fieldError.invalid(path.child('count'), count, 'must be greater than zero'))
  } else errors.push(fieldError.notSupported(path.child('allocationMode'), mode ?? '', modes))
  for (const [i, toleration] of (tolerations ?? []).entries()) errors.push(...tolerationFaults(toleration, path.child('tolerations').index(i)))
  return errors
}

function constraintFaults({ requests, matchAttribute, distinctAttribute }: DeviceConstraint, names: ReadonlySet<string>, path: FieldPath): FieldError[] {
  const errors = requestRefsFaults(requests, names, path.child('requests'))
  if (matchAttribute !== undefined) errors.push(...fullyQualifiedNameFaults(matchAttribute, path.child('matchAttribute')))
  else if (distinctAttribute !== undefined) errors.push(...fullyQualifiedNameFaults(distinctAttribute, path.child('distinctAttribute')))
  else errors.push(fieldError.required(path, 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'))
  return errors
}
