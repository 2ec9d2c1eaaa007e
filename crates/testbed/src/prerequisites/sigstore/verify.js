// Verifies bundles with the sigstore project's verifier, and derives public keys.

const { createPrivateKey, createPublicKey } = require('node:crypto')
const { readFileSync } = require('node:fs')
const { bundleFromJSON } = require('@sigstore/bundle')
const { TrustedRoot } = require('@sigstore/protobuf-specs')
const { Verifier, toSignedEntity, toTrustMaterial } = require('@sigstore/verify')

const input = JSON.parse(readFileSync(process.argv[1], 'utf8'))
const rawBytes = pem => createPublicKey(pem).export({ format: 'der', type: 'spki' })
const keys = Object.fromEntries(input.keys.map(([hint, pem]) => [hint, { rawBytes: rawBytes(pem) }]))
const thresholds = { tlogThreshold: 0, ctlogThreshold: 0, timestampThreshold: 0 }
const verifier = new Verifier(toTrustMaterial(TrustedRoot.fromJSON({}), keys), thresholds)

const verdict = text => {
  try {
    verifier.verify(toSignedEntity(bundleFromJSON(JSON.parse(text))))
    return null
  } catch (error) {
    return `${error.name}: ${error.message}`
  }
}
const publicKey = pem => createPublicKey(createPrivateKey(pem)).export({ format: 'pem', type: 'spki' })
const output = { bundles: input.bundles.map(verdict), public: input.private.map(publicKey) }
console.log(JSON.stringify(output))
