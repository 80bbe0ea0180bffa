import assert from 'node:assert/strict'
import { test } from 'node:test'
import { execQuery, failureOf } from './execChannels.ts'

test('ARC-16 the words of a command stay apart in an exec’s query, whatever is in them', () => {
  assert.equal(
    `${execQuery('main', ['cat', 'a b&container=other'], ['stdout', 'stderr'])}`,
    'command=cat&command=a+b%26container%3Dother&container=main&stdout=true&stderr=true',
  )
})

test('ARC-16 the end of a command is its own words, and a broken connection is no success', () => {
  assert.deepEqual(['{"status":"Success"}', '{"status":"Failure","message":"no such file"}', '{"status":"Failure"}', ''].map(failureOf), [
    '',
    'no such file',
    'the command failed',
    'the connection ended before the command',
  ])
})
