/** API-28: the trust settings that extension servers read follow the flags. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { trustConfigMap } from '#apiserver/aggregation/trustConfigMap'
import { testCertificates } from '#testing/testCertificates'
import { trustFromOptions } from './fromOptions.ts'
import { serverOptions } from './options/index.ts'

const users = (await testCertificates('CN=users')).cert
const proxies = (await testCertificates('CN=proxies')).cert
const files: Readonly<Record<string, string>> = { 'users.pem': users, 'proxies.pem': proxies }
const context = { file: (path: string) => ({ path, read: async () => files[path] ?? assert.fail(path), follow: () => () => {} }) }
const published = async (...flags: string[]) =>
  trustConfigMap(trustFromOptions(await serverOptions(flags, context), { clientCa: 'OWN-USERS', requestHeaderCa: 'OWN-PROXIES' }, ['own-proxy'])).data

test('without flags, the own authorities and proxies, and the usual headers', async () => {
  assert.deepEqual(await published(), {
    'client-ca-file': 'OWN-USERS',
    'requestheader-client-ca-file': 'OWN-PROXIES',
    'requestheader-username-headers': '["X-Remote-User"]',
    'requestheader-uid-headers': '["X-Remote-Uid"]',
    'requestheader-group-headers': '["X-Remote-Group"]',
    'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
    'requestheader-allowed-names': '["own-proxy"]',
  })
})

test('API-28 flags add authorities and header names to those of the cluster', async () => {
  const authorities = ['--client-ca-file=users.pem', '--requestheader-client-ca-file=proxies.pem', '--requestheader-allowed-names=a,b']
  const headers = [
    '--requestheader-username-headers=X-User,X-Remote-User',
    '--requestheader-group-headers=X-Team',
    '--requestheader-extra-headers-prefix=X-More-',
  ]
  assert.deepEqual(await published(...authorities, ...headers), {
    'client-ca-file': `OWN-USERS\n${users}`,
    'requestheader-client-ca-file': `OWN-PROXIES\n${proxies}`,
    'requestheader-username-headers': '["X-User","X-Remote-User"]',
    'requestheader-uid-headers': '[]',
    'requestheader-group-headers': '["X-Team"]',
    'requestheader-extra-headers-prefix': '["X-More-"]',
    'requestheader-allowed-names': '["a","b"]',
  })
})
