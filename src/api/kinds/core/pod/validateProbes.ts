/** Validation of probes and lifecycle hooks (L1). Upstream: pkg/apis/core/validation validateProbe, validateHandler (v1.36). */
import type { Container, HTTPGetAction, LifecycleHandler, Probe } from '#api/gen/types/core.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isHttpHeaderName, isPortName, isPortNumber } from '#api/machinery/names'
import { validateNonNegative } from '#api/machinery/objectMeta'
import { faults, oneOf, positive } from '../../rules.ts'

/** A port by number or by name. */
export function validatePortNumberOrName(port: number | string | undefined, path: FieldPath): FieldError[] {
  if (typeof port === 'number') return faults(path, port, isPortNumber(port))
  return faults(path, port ?? '', isPortName(port ?? ''))
}

/** The three probes and two hooks of a container. */
export function validateProbesAndLifecycle(
  container: Pick<Container, 'livenessProbe' | 'readinessProbe' | 'startupProbe' | 'lifecycle'>,
  gracePeriodSeconds: number,
  path: FieldPath,
): FieldError[] {
  const errors: FieldError[] = []
  for (const hook of ['postStart', 'preStop'] as const) {
    const handler = container.lifecycle?.[hook]
    if (handler) errors.push(...handlerFaults(handler, gracePeriodSeconds, path.child('lifecycle', hook)))
  }
  for (const name of ['livenessProbe', 'readinessProbe', 'startupProbe'] as const) {
    const probe = container[name]
    if (!probe) continue
    const at = path.child(name)
    errors.push(...probeFaults(probe, gracePeriodSeconds, at))
    if (name !== 'readinessProbe' && probe.successThreshold !== undefined && probe.successThreshold !== 1)
      errors.push(fieldError.invalid(at.child('successThreshold'), probe.successThreshold, 'must be 1'))
    if (name === 'readinessProbe' && probe.terminationGracePeriodSeconds !== undefined)
      errors.push(fieldError.invalid(at.child('terminationGracePeriodSeconds'), probe.terminationGracePeriodSeconds, 'must not be set for readinessProbes'))
  }
  return errors
}

function probeFaults(probe: Probe, gracePeriodSeconds: number, path: FieldPath): FieldError[] {
  return [
    ...handlerFaults(probe, gracePeriodSeconds, path),
    ...(['initialDelaySeconds', 'timeoutSeconds', 'periodSeconds', 'successThreshold', 'failureThreshold'] as const).flatMap((field) =>
      validateNonNegative(probe[field], path.child(field)),
    ),
    ...positive(probe.terminationGracePeriodSeconds, path.child('terminationGracePeriodSeconds')),
  ]
}

function handlerFaults(handler: LifecycleHandler & Pick<Probe, 'grpc'>, gracePeriodSeconds: number, path: FieldPath): FieldError[] {
  const given = (['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep'] as const).filter((name) => handler[name])
  if (given.length === 0) return [fieldError.required(path, 'must specify a handler type')]
  const errors = given.slice(1).map((name) => fieldError.forbidden(path.child(name), 'may not specify more than 1 handler type'))
  switch (given[0]) {
    case 'exec':
      if (!handler.exec?.command?.length) errors.push(fieldError.required(path.child('exec', 'command')))
      break
    case 'httpGet':
      errors.push(...httpFaults(handler.httpGet as HTTPGetAction, path.child('httpGet')))
      break
    case 'tcpSocket':
      errors.push(...validatePortNumberOrName(handler.tcpSocket?.port, path.child('tcpSocket', 'port')))
      break
    case 'grpc':
      errors.push(...faults(path.child('grpc', 'port'), handler.grpc?.port, isPortNumber(handler.grpc?.port ?? 0)))
      break
    case 'sleep': {
      const seconds = handler.sleep?.seconds ?? 0
      if (seconds < 0 || seconds > gracePeriodSeconds)
        errors.push(
          fieldError.invalid(path.child('sleep'), seconds, `must be non-negative and less than terminationGracePeriodSeconds (${gracePeriodSeconds})`),
        )
    }
  }
  return errors
}

function httpFaults(action: HTTPGetAction, path: FieldPath): FieldError[] {
  return [
    ...(action.path ? [] : [fieldError.required(path.child('path'))]),
    ...validatePortNumberOrName(action.port, path.child('port')),
    ...oneOf(action.scheme, ['HTTP', 'HTTPS'], path.child('scheme')),
    ...(action.httpHeaders ?? []).flatMap(({ name }) => faults(path.child('httpHeaders'), name, isHttpHeaderName(name))),
  ]
}
