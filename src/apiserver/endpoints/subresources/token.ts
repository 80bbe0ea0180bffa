/** serviceaccounts/token (L3): the TokenRequest endpoint; the token itself is made by the injected issuer. */
import type { TokenRequest } from '#api/gen/types/authentication.v1'
import { FieldPath, fieldError, invalid } from '#api/machinery/fieldPath'
import type { KubeObject } from '#api/machinery/meta'
import { conflict, notFound, StatusError } from '#api/machinery/status'
import { schemaFor } from '#api/schema/builtIn'
import type { Answer } from '../../core/answer.ts'
import { decodeBody } from '../../core/body.ts'
import type { TokenIssuer } from '../../core/computedResource.ts'
import type { UserInfo } from '../../core/request.ts'
import { admit } from '../../registry/admit.ts'
import { attributesOf } from '../../registry/writer.ts'
import { type Scope, writeContext } from '../scope.ts'

const tokenRequestKind = { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' }

export function tokenHandlers(issuer: TokenIssuer | undefined): { create(scope: Scope): Promise<Answer> } {
  return {
    async create(scope) {
      const { deps, request, info } = scope
      const schema = schemaFor(tokenRequestKind.group, tokenRequestKind.version, tokenRequestKind.kind)
      if (!schema) throw new Error('no schema for TokenRequest')
      const body: KubeObject & { spec?: object } = await decodeBody(scope, { ...tokenRequestKind, schema })
      body.spec ??= {}
      if (!issuer) throw new StatusError('MethodNotAllowed', 'the server issues no service account tokens')
      const { name, namespace } = info
      requireSame(body, name, { name, namespace })
      // Another server may have deleted or created what the token is bound to.
      await deps.registry.cacher.waitUntilCurrent(request.cancellation)
      const account = deps.registry.reader.get({ group: '', resource: 'serviceaccounts' }, namespace, name)
      if (!account) throw notFound({ group: '', resource: 'serviceaccounts' }, name)
      const uid = account.metadata.uid ?? ''
      if (body.metadata.uid && body.metadata.uid !== uid) {
        const why = `the UID in the token request (${body.metadata.uid}) does not match the UID of the service account (${uid})`
        throw conflict({ group: tokenRequestKind.group, resource: tokenRequestKind.kind }, name, why)
      }
      body.metadata = { ...body.metadata, name, namespace, uid }
      const user = request.user as UserInfo
      // NodeRestriction looks at what a kubelet's token is bound to.
      const context = { ...writeContext(scope, 'CreateOptions'), kind: tokenRequestKind }
      const attributes = attributesOf(context, 'CREATE', info.name, body, undefined)
      await admit(deps.writer.admission, attributes)
      await deps.writer.admission.validate(attributes)
      const value = await issuer.issue({
        namespace: info.namespace,
        name: info.name,
        serviceAccountUid: uid,
        tokenRequest: body as unknown as TokenRequest,
        user,
        dryRun: context.dryRun,
        warn: (text) => request.warnings.push(text),
        annotate: (key, value) => request.audit?.annotate(key, value),
      })
      return { type: 'value', status: 201, value }
    },
  }
}

/** The account in the body must be that in the path. @throws Status Invalid */
function requireSame({ metadata }: KubeObject, accountName: string, path: { readonly name: string; readonly namespace: string }): void {
  for (const field of ['name', 'namespace'] as const) {
    if (!metadata[field] || metadata[field] === path[field]) continue
    const fault = fieldError.invalid(FieldPath.of('metadata', field), metadata[field], `must match the service account ${field} if specified`)
    throw invalid(tokenRequestKind, accountName, [fault])
  }
}
