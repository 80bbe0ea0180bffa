/** serviceaccounts/token (L3): the TokenRequest endpoint; the token itself is made by the injected issuer. */
import type { TokenRequest } from '#api/gen/types/authentication.v1'
import { FieldPath, fieldError, invalid } from '#api/machinery/fieldPath'
import type { KubeObject } from '#api/machinery/meta'
import { conflict, notFound, StatusError } from '#api/machinery/status'
import { schemaFor } from '#api/schema/builtIn'
import type { Answer } from '../../answer.ts'
import { admit, validateAdmission } from '../../registry/admit.ts'
import type { UserInfo } from '../../request.ts'
import { decodeBody } from '../body.ts'
import { type Scope, writeContext } from '../scope.ts'
import type { TokenIssuer } from '../virtualResource.ts'

const tokenRequestKind = { group: 'authentication.k8s.io', kind: 'TokenRequest' }

export function tokenHandlers(issuer: TokenIssuer | undefined): { create(scope: Scope): Promise<Answer> } {
  return {
    async create(scope) {
      const { deps, request, info } = scope
      const schema = schemaFor('authentication.k8s.io', 'v1', 'TokenRequest')
      if (!schema) throw new Error('no schema for TokenRequest')
      const body: KubeObject & { spec?: object } = await decodeBody(scope, { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest', schema })
      body.spec ??= {}
      if (!issuer) throw new StatusError('MethodNotAllowed', 'the server issues no service account tokens')
      const { name, namespace } = info
      requireSame(body, name, { name, namespace })
      const account = deps.registry.reader.get({ group: '', resource: 'serviceaccounts' }, namespace, name)
      if (!account) throw notFound({ group: '', resource: 'serviceaccounts' }, name)
      const uid = account.metadata.uid ?? ''
      if (body.metadata.uid && body.metadata.uid !== uid) {
        const why = `the UID in the token request (${body.metadata.uid}) does not match the UID of the service account (${uid})`
        throw conflict({ group: tokenRequestKind.group, resource: tokenRequestKind.kind }, name, why)
      }
      body.metadata = { ...body.metadata, name, namespace, uid }
      const user = request.user as UserInfo
      const { dryRun } = writeContext(scope, 'CreateOptions')
      // NodeRestriction looks at what a kubelet's token is bound to.
      const attributes = {
        operation: 'CREATE' as const,
        resource: { group: '', version: 'v1', resource: 'serviceaccounts' },
        subresource: 'token',
        kind: { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' },
        namespace: info.namespace,
        name: info.name,
        object: body,
        user,
        dryRun,
        warn: (text: string) => request.warnings.push(text),
      }
      await admit(deps.writer.admission, attributes)
      await validateAdmission(deps.writer.admission, attributes)
      const value = await issuer.issue({
        namespace: info.namespace,
        name: info.name,
        serviceAccountUid: uid,
        tokenRequest: body as unknown as TokenRequest,
        user,
        dryRun,
        warn: (text) => request.warnings.push(text),
      })
      return { type: 'value', status: 201, value }
    },
  }
}

/** What the body says of the account must be what the path says. @throws Status Invalid */
function requireSame({ metadata }: KubeObject, accountName: string, path: { readonly name: string; readonly namespace: string }): void {
  for (const field of ['name', 'namespace'] as const) {
    if (!metadata[field] || metadata[field] === path[field]) continue
    const fault = fieldError.invalid(FieldPath.of('metadata', field), metadata[field], `must match the service account ${field} if specified`)
    throw invalid(tokenRequestKind, accountName, [fault])
  }
}
