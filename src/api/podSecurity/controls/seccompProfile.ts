/**
 * Seccomp profiles (L1, pure): baseline forbids to be unconfined, first by annotation and since v1.19 by field; restricted asks for a profile.
 * Upstream: policy/check_seccompProfile_{baseline,restricted}.go.
 */
import type { PodSpec } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import {
  type AnyContainer,
  type CheckPod,
  type Control,
  containersOf,
  distinct,
  exceptWindows,
  named,
  namesWhere,
  plural,
  quoted,
  setters,
  type Violation,
} from '../control.ts'

const reason = 'seccompProfile'
const podAnnotation = 'seccomp.security.alpha.kubernetes.io/pod'
const containerAnnotation = 'container.seccomp.security.alpha.kubernetes.io/'

const byAnnotation: CheckPod = ({ annotations = {} }, spec) => {
  const keys = [podAnnotation, ...containersOf(spec).map(({ name }) => `${containerAnnotation}${name}`)]
  const bad = keys.filter((key) => annotations[key] !== undefined && !isAllowedNote(annotations[key]))
  const forbidden = distinct(bad.map((key) => `${key}=${JSON.stringify(annotations[key])}`))
  if (forbidden.length === 0) return undefined
  return { reason, detail: `forbidden ${plural('annotation', forbidden.length)} ${forbidden.join(', ')}` }
}

function isAllowedNote(profile: string): boolean {
  return profile === 'runtime/default' || profile === 'docker/default' || profile.startsWith('localhost/')
}

const isBad = (type: string | undefined) => type !== undefined && type !== 'Localhost' && type !== 'RuntimeDefault'
const typeOf = ({ securityContext }: AnyContainer) => securityContext?.seccompProfile?.type

function unconfined(spec: Frozen<PodSpec>): Violation | undefined {
  const ofPod = spec.securityContext?.seccompProfile?.type
  const bad = containersOf(spec).filter((container) => isBad(typeOf(container)))
  const who = setters(
    isBad(ofPod),
    bad.map(({ name }) => name),
  )
  if (who === '') return undefined
  const types = distinct([ofPod, ...bad.map(typeOf)].filter((type): type is string => isBad(type)))
  return { reason, detail: `${who} must not set securityContext.seccompProfile.type to ${quoted(types)}` }
}

const required: CheckPod = (_metadata, spec) => {
  const bad = unconfined(spec)
  if (bad || spec.securityContext?.seccompProfile) return bad
  const silent = namesWhere(spec, ({ securityContext }) => !securityContext?.seccompProfile)
  if (silent.length === 0) return undefined
  return { reason, detail: `pod or ${named('container', silent)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"` }
}

export const seccompProfileBaseline: Control = {
  id: 'seccompProfile_baseline',
  level: 'baseline',
  revisions: [
    { since: 0, check: byAnnotation },
    { since: 19, check: (_metadata, spec) => unconfined(spec) },
  ],
}

const overrides = ['seccompProfile_baseline']

export const seccompProfileRestricted: Control = {
  id: 'seccompProfile_restricted',
  level: 'restricted',
  revisions: [
    { since: 19, check: required, overrides },
    { since: 25, check: exceptWindows(required), overrides },
  ],
}
