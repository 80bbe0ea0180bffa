/**
 * The page's login (L4). The cookie is the browser's; the other half of the session, its key, is kept in this tab, and other tabs of the page ask
 * for it: no other origin can. Neither is worth anything alone.
 */
import { signal } from '@preact/signals'
import type { ShownCluster } from '../model/shownCluster.ts'
import { withRetries } from './withRetries.ts'

export interface Facts {
  readonly user: string
  readonly groups: readonly string[]
  readonly cluster: ShownCluster
}

/** `asking`: not known yet. */
export const session = signal<Facts | 'asking' | 'none'>('asking')
export const loginError = signal('')

/** Whether the page shows a bundle. */
export const isStill = (): boolean => stillSinceMs() !== undefined

/** When the bundle was taken that the page shows. */
export const stillSinceMs = (): number | undefined => (typeof session.value === 'object' ? session.value.cluster.takenMs : undefined)

const slot = 'skiff-ui-key'
const tabs = new BroadcastChannel('skiff-ui')

export const sessionKey = (): string => sessionStorage.getItem(slot) ?? ''

tabs.onmessage = ({ data }: MessageEvent<{ readonly type: string; readonly key?: string }>) => {
  if (data.type === 'ask' && sessionKey() !== '') tabs.postMessage({ type: 'key', key: sessionKey() })
  if (data.type === 'key' && data.key && session.peek() !== 'asking' && sessionKey() === '') void resume(data.key)
  if (data.type === 'out') forget()
}

async function resume(key: string): Promise<boolean> {
  sessionStorage.setItem(slot, key)
  const answer = await withRetries(() => fetch('/front/session', { headers: { 'x-skiff-key': key } })).catch(() => undefined)
  if (answer?.ok) {
    session.value = (await answer.json()) as Facts
    return true
  }
  // Without an answer the key may still be good.
  if (answer) sessionStorage.removeItem(slot)
  return false
}

/** Logs in with what is at hand: the code of the address, this tab's key, or another tab's. */
export async function begin(): Promise<void> {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1]
  if (code !== undefined) {
    history.replaceState(null, '', '/#/')
    if (await login({ code })) return
  }
  if (sessionKey() !== '' && (await resume(sessionKey()))) return
  session.value = 'none'
  tabs.postMessage({ type: 'ask' })
}

/** A code, or a bearer token. @returns whether it was accepted */
export async function login(how: { readonly code: string } | { readonly token: string }): Promise<boolean> {
  loginError.value = ''
  try {
    const answer = await fetch('/front/login', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(how) })
    const body = (await answer.json()) as Facts & { readonly key: string; readonly message?: string }
    if (!answer.ok) throw new Error(body.message ?? `the front answered ${answer.status}`)
    sessionStorage.setItem(slot, body.key)
    session.value = body
    return true
  } catch (error) {
    loginError.value = (error as Error).message
    return false
  }
}

export async function logout(): Promise<void> {
  await fetch('/front/logout', { method: 'POST', headers: { 'x-skiff-key': sessionKey() } }).catch(() => undefined)
  tabs.postMessage({ type: 'out' })
  forget()
}

/** Forgets the key of a session that has ended. */
export function forget(): void {
  sessionStorage.removeItem(slot)
  session.value = 'none'
}
