import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tlsRulesOf } from './tlsNames.ts'

const ecdsa = 'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256'
const missing =
  'error configuring http2: http2: TLSConfig.CipherSuites is missing an HTTP/2-required AES_128_GCM_SHA256 cipher (need at least one of TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)'
const cases = [
  { name: 'nothing said', version: undefined, suites: [], want: { minVersion: 'TLSv1.2', faults: [] } },
  { name: 'an empty version', version: '', suites: [], want: { minVersion: 'TLSv1.2', faults: [] } },
  {
    name: 'suites, of which those of TLS 1.3 cannot be chosen',
    version: 'VersionTLS12',
    suites: [ecdsa, 'TLS_AES_128_GCM_SHA256'],
    want: { minVersion: 'TLSv1.2', ciphers: ['ECDHE-ECDSA-AES128-GCM-SHA256'], faults: [] },
  },
  { name: 'an unknown version', version: 'TLS1.2', suites: [], want: { minVersion: undefined, faults: ['unknown tls version "TLS1.2"'] } },
  {
    name: 'an unknown suite',
    version: 'VersionTLS11',
    suites: [ecdsa, 'TLS_NONE'],
    want: { minVersion: 'TLSv1.1', ciphers: ['ECDHE-ECDSA-AES128-GCM-SHA256'], faults: ["Cipher suite TLS_NONE not supported or doesn't exist"] },
  },
  {
    name: 'no suite that HTTP/2 needs',
    version: 'VersionTLS12',
    suites: ['TLS_RSA_WITH_AES_128_CBC_SHA'],
    want: { minVersion: 'TLSv1.2', ciphers: ['AES128-SHA'], faults: [missing] },
  },
]
for (const { name, version, suites, want } of cases) test(`Go's names for TLS: ${name}`, () => assert.deepEqual(tlsRulesOf(version, suites), want))
