/** Resolves the port of a probe or hook (L3, pure). Upstream: pkg/probe/util.go ResolveContainerPort (v1.36). */
import type { FrozenContainer } from './containers.ts'

/** A port by number or by the name of one of the container's ports. */
export function containerPort(port: number | string, container: FrozenContainer): number {
  const named = typeof port === 'string' ? container.ports?.find((candidate) => candidate.name === port)?.containerPort : undefined
  const number = named ?? Number(port)
  if (typeof port === 'string' && !Number.isInteger(number)) throw new Error(`couldn't find port: "${port}" in container ${container.name}`)
  if (number < 1 || number > 65_535) throw new Error(`invalid port number: ${number}`)
  return number
}
