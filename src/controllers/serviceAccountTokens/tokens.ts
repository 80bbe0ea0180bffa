/**
 * Fills secrets of type service-account-token that people make, and deletes them with their account (L3). It makes none of its own accord: pods get
 * bound tokens. Upstream: pkg/controller/serviceaccount/tokens_controller.go (v1.36).
 */
import type { Secret, ServiceAccount } from '#api/gen/types/core.v1'
import { type Frozen, keyOf, refOfKey } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Component } from '#base/component'
import { secrets, serviceAccounts } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler } from '../framework/reconciler.ts'
import { accountNameAnnotation, accountUidAnnotation, isTokenOf, isTokenSecret } from './tokenSecret.ts'

export interface TokensOptions {
  /** Makes the token of a secret for a service account, which does not expire; absent: such secrets get no token. */
  readonly serviceAccountToken?: ((account: Frozen<ServiceAccount>, secret: Frozen<Secret>) => string) | undefined
  /** PEM of the cluster's CA. */
  readonly rootCa?: string | undefined
}

export const serviceAccountTokens: ControllerDescriptor<TokensOptions> = {
  name: 'serviceaccount-token-controller',
  aliases: ['serviceaccount-token'],
  serviceAccount: 'tokens-controller',
  // Only the manager itself may issue tokens.
  actsAsManager: true,
  create: createTokensController,
}

const maxRetries = 10

function createTokensController(context: ControllerContext, { serviceAccountToken: generate, rootCa }: TokensOptions): Component {
  const { client } = context
  // Without a key there is nothing to sign with.
  if (!generate) return { name: serviceAccountTokens.name, run: async () => {} }
  const accounts = context.informers.of(serviceAccounts)
  const informer = context.informers.of(secrets)
  const bySecret = createReconciler(context, {
    name: serviceAccountTokens.name,
    queueName: 'serviceaccount_tokens_secret',
    workers: 5,
    maxRetries,
    reconcile: syncSecret,
  })
  const byAccount = createReconciler(context, {
    name: serviceAccountTokens.name,
    queueName: 'serviceaccount_tokens_service',
    workers: 5,
    maxRetries,
    reconcile: syncAccount,
  })
  const enqueueSecret = (secret: Frozen<Secret>) => {
    if (isTokenSecret(secret)) bySecret.queue.add(keyOf(secret))
  }
  bySecret.watch(informer, {
    onAdd: enqueueSecret,
    onUpdate: (_, secret) => enqueueSecret(secret),
    onDelete: (secret) => {
      enqueueSecret(secret)
      const name = secret.metadata.annotations?.[accountNameAnnotation]
      if (isTokenSecret(secret) && name) byAccount.queue.add(`${secret.metadata.namespace}/${name}`)
    },
  })
  byAccount.watch(accounts, {
    onAdd: (account) => enqueueTokensOf(account),
    onUpdate: (_, account) => enqueueTokensOf(account),
    onDelete: (account) => enqueueTokensOf(account),
  })
  byAccount.needs(informer)
  bySecret.needs(accounts)
  return {
    name: serviceAccountTokens.name,
    run: async (signal) => void (await Promise.all([bySecret.run(signal), byAccount.run(signal)])),
  }

  function enqueueTokensOf(account: Frozen<ServiceAccount>): void {
    const { namespace } = account.metadata
    const mine = informer.lister.list({
      namespace,
      matches: (secret) => isTokenSecret(secret) && secret.metadata.annotations?.[accountNameAnnotation] === account.metadata.name,
    })
    for (const secret of mine) bySecret.queue.add(keyOf(secret))
  }

  /** Takes references to token secrets that are gone out of the account. */
  async function syncAccount(key: string, signal: AbortSignal): Promise<undefined> {
    if (!accounts.store.get(key)?.secrets) return
    const account = await client.of(serviceAccounts).get(refOfKey(key), { signal }).catch(unlessNotFound)
    if (!account?.secrets) return
    const left: { name?: string | undefined }[] = []
    for (const reference of account.secrets) {
      const secret = await client
        .of(secrets)
        .get({ namespace: account.metadata.namespace, name: reference.name ?? '' }, { signal })
        .catch(unlessNotFound)
      if (secret) left.push({ ...reference })
    }
    if (left.length === account.secrets.length) return
    await client.of(serviceAccounts).update({ ...account, secrets: left } as Frozen<ServiceAccount>, { signal })
  }

  async function syncSecret(key: string, signal: AbortSignal): Promise<undefined> {
    const secret = informer.store.get(key)
    if (!secret || !isTokenSecret(secret) || secret.metadata.deletionTimestamp) return
    const account = await accountOf(secret, signal)
    if (account) await fill(secret, account, signal)
    else await remove(secret, signal)
  }

  /** Undefined only when the server confirms that the account does not exist. */
  async function accountOf(secret: Frozen<Secret>, signal: AbortSignal): Promise<Frozen<ServiceAccount> | undefined> {
    const { namespace, annotations } = secret.metadata
    const name = annotations?.[accountNameAnnotation] ?? ''
    if (name === '') return undefined
    const cached = accounts.lister.get({ namespace, name })
    if (cached && isTokenOf(secret, cached)) return cached
    const live = await client.of(serviceAccounts).get({ namespace, name }, { signal }).catch(unlessNotFound)
    return live && isTokenOf(secret, live) ? live : undefined
  }

  async function remove({ metadata: { namespace, name = '', uid } }: Frozen<Secret>, signal: AbortSignal): Promise<void> {
    try {
      await client.of(secrets).delete({ namespace, name }, { preconditions: { uid }, signal })
    } catch (error) {
      if (!isStatus(error, 'NotFound') && !isStatus(error, 'Conflict')) throw error
    }
  }

  async function fill(cached: Frozen<Secret>, account: Frozen<ServiceAccount>, signal: AbortSignal): Promise<void> {
    if (!wanted(cached, account, rootCa)) return
    const { namespace, name = '', uid } = cached.metadata
    const live = await client.of(secrets).get({ namespace, name }, { signal }).catch(unlessNotFound)
    const missing = live?.metadata.uid === uid ? wanted(live as Frozen<Secret>, account, rootCa) : undefined
    if (!live || !missing) return
    const token = missing.token && generate ? { token: base64(generate(account, live)) } : {}
    const annotations = {
      ...live.metadata.annotations,
      [accountNameAnnotation]: account.metadata.name ?? '',
      [accountUidAnnotation]: account.metadata.uid ?? '',
    }
    const data = { ...live.data, ...missing.data, ...token }
    await client.of(secrets).update({ ...live, metadata: { ...live.metadata, annotations }, data }, { signal })
  }
}

/** What a token's secret lacks; undefined: nothing. */
export function wanted(
  { data = {}, metadata }: Frozen<Secret>,
  account: Frozen<ServiceAccount>,
  rootCa: string | undefined,
): { readonly token: boolean; readonly data: Readonly<Record<string, string>> } | undefined {
  const token = !data.token
  const more: Record<string, string> = {}
  if (rootCa !== undefined && data['ca.crt'] !== base64(rootCa)) more['ca.crt'] = base64(rootCa)
  if (!data.namespace) more.namespace = base64(metadata.namespace ?? '')
  const isNamed = metadata.annotations?.[accountUidAnnotation] === account.metadata.uid
  return token || Object.keys(more).length > 0 || !isNamed ? { token, data: more } : undefined
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

function unlessNotFound(error: unknown): undefined {
  if (!isStatus(error, 'NotFound')) throw error
  return undefined
}
