import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PathPattern } from '../model/hostRoutes.ts'
import { comparablePath } from '../model/requestPath.ts'
import type { PathChange, Redirect } from '../model/route.ts'
import { locationOf, rewritten } from './rewrite.ts'

const askedFor = (url: string) => ({ host: 'a.test', path: comparablePath(url.split('?')[0] ?? '') ?? '', url, method: 'GET', headers: {} })
const prefixed = (path: string): PathPattern => ({ isExact: false, path })

const rewrites: [url: string, prefix: string, change: PathChange, wanted: string][] = [
  ['/one/two?q=1', '/one', { replaces: 'prefix', path: '/three' }, '/three/two?q=1'],
  ['/one', '/one', { replaces: 'prefix', path: '/three/' }, '/three'],
  ['/one/', '/one', { replaces: 'prefix', path: '/three' }, '/three/'],
  ['/one/two', '/one', { replaces: 'prefix', path: '/' }, '/two'],
  ['/one', '/one', { replaces: 'prefix', path: '/' }, '/'],
  ['/two', '', { replaces: 'prefix', path: '/x' }, '/x/two'],
  ['/one/%2e%2e/one/a%20b%2Fc%3Fd', '/one', { replaces: 'prefix', path: '/x' }, '/x/a%20b%2Fc%3Fd'],
  ['/one/two?q=1', '/one', { replaces: 'path', path: '/full' }, '/full?q=1'],
]
for (const [url, prefix, path, wanted] of rewrites) {
  test(`ING-05 ${url} becomes ${wanted}, with ${path.path} in place of the ${path.replaces} ${prefix}`, () => {
    const { url: found } = rewritten({ backend: undefined, pattern: prefixed(prefix), rewrite: { path } }, { ...askedFor(url), authority: 'a.test' })
    assert.equal(found, wanted)
  })
}

const redirects: [redirect: Partial<Redirect>, port: number, wanted: string][] = [
  [{}, 80, 'http://a.test/one?q=1'],
  [{}, 8080, 'http://a.test:8080/one?q=1'],
  [{ scheme: 'https' }, 8080, 'https://a.test/one?q=1'],
  [{ scheme: 'https', port: 8443 }, 80, 'https://a.test:8443/one?q=1'],
  [{ port: 80 }, 8080, 'http://a.test/one?q=1'],
  [{ host: 'b.test', path: { replaces: 'prefix', path: '/two' } }, 80, 'http://b.test/two?q=1'],
]
for (const [redirect, port, wanted] of redirects) {
  test(`ING-05 a redirect of ${JSON.stringify(redirect)} from port ${port} leads to ${wanted}`, () => {
    assert.equal(locationOf({ status: 302, ...redirect }, prefixed('/one'), askedFor('/one?q=1'), { scheme: 'http', port }), wanted)
  })
}
