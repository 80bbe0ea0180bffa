/** Admission of requests that connect to something (L3): exec, attach, port-forward, proxy. Upstream: handlers.ConnectResource. */
import { admit, validateAdmission } from '../../registry/admit.ts'
import { attributesOf } from '../../registry/writer.ts'
import { type Scope, writeContext } from '../scope.ts'

/** @throws what a plugin refuses with, usually Forbidden */
export async function connectAdmission(scope: Scope): Promise<void> {
  const { deps, info, subresource } = scope
  const attributes = attributesOf(writeContext(scope, subresource?.kind.kind ?? ''), 'CONNECT', info.name, undefined, undefined)
  await admit(deps.writer.admission, attributes)
  await validateAdmission(deps.writer.admission, attributes)
}
