package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// validFor is how long the lab's certificates hold; no lab lives that long.
const validFor = 365 * 24 * time.Hour

// authority signs the certificates of one cluster.
type authority struct {
	cert *x509.Certificate
	pem  []byte
	key  *ecdsa.PrivateKey
}

// identity is a user of the cluster: a kubeconfig's file name, and whom it speaks as.
type identity struct {
	file, user, group string
}

// identities are the users that every cluster of the lab has.
var identities = []identity{
	{"admin", "lab-admin", "system:masters"},
	{"controller-manager", "system:kube-controller-manager", ""},
	{"scheduler", "system:kube-scheduler", ""},
	{"nodes", "lab-nodes", "system:masters"},
}

// runCredentials writes what the parts of a cluster prove themselves with into
// a folder: the authority, the API server's certificates, the key of service
// account tokens, and a kubeconfig for each user. Files that are there stay.
func runCredentials() int {
	flags := flag.NewFlagSet("credentials", flag.ExitOnError)
	dir := flags.String("dir", "", "folder to write to")
	server := flags.String("server", "", "URL of the API server")
	names := flags.String("names", "", "names and addresses the API server answers to, with commas")
	kubelets := flags.String("kubelets", "", "names of nodes to write kubelet kubeconfigs for, with commas")
	_ = flags.Parse(os.Args[1:])
	if *dir == "" || *server == "" {
		return fail(errors.New("`credentials` needs --dir and --server"))
	}
	if err := writeCredentials(*dir, *server, splitList(*names), splitList(*kubelets)); err != nil {
		return fail(err)
	}
	return 0
}

func splitList(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

func writeCredentials(dir, server string, names, kubelets []string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	ca, err := loadAuthority(dir)
	if err != nil {
		return err
	}
	if err := writeTokenKey(dir); err != nil {
		return err
	}
	if err := ca.writePair(dir, "apiserver", "kube-apiserver", "", names); err != nil {
		return err
	}
	// The API server shows this one to kubelets (logs, exec).
	if err := ca.writePair(dir, "kubelet-client", "kube-apiserver-kubelet-client", "system:masters", nil); err != nil {
		return err
	}
	all := identities
	for _, name := range kubelets {
		all = append(all, identity{"kubelet-" + name, "system:node:" + name, "system:nodes"})
	}
	for _, who := range all {
		if err := ca.writeKubeconfig(dir, server, who); err != nil {
			return err
		}
	}
	return nil
}

// loadAuthority returns the authority whose files are in dir, or a new one.
func loadAuthority(dir string) (*authority, error) {
	certPEM, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if errors.Is(err, fs.ErrNotExist) {
		return newAuthority(dir)
	}
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(filepath.Join(dir, "ca.key"))
	if err != nil {
		return nil, err
	}
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, fmt.Errorf("`%s` holds a ca.crt or ca.key that is not PEM", dir)
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, pem: certPEM, key: key}, nil
}

func newAuthority(dir string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificateTemplate("lab-ca", "")
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	ca := &authority{cert: cert, key: key}
	ca.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := writeKey(filepath.Join(dir, "ca.key"), key); err != nil {
		return nil, err
	}
	return ca, os.WriteFile(filepath.Join(dir, "ca.crt"), ca.pem, 0o644)
}

func certificateTemplate(user, group string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		panic(err)
	}
	subject := pkix.Name{CommonName: user}
	if group != "" {
		subject.Organization = []string{group}
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    time.Now().Add(-5 * time.Minute),
		NotAfter:     time.Now().Add(validFor),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
}

// issue returns a new certificate for user, and its key, as PEM. With names it
// is a server's, without a client's.
func (ca *authority) issue(user, group string, names []string) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := certificateTemplate(user, group)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(names) > 0 {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, private.Public(), ca.key)
	if err != nil {
		return nil, nil, err
	}
	key, err = keyPEM(private)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key, err
}

func (ca *authority) writePair(dir, file, user, group string, names []string) error {
	path := filepath.Join(dir, file)
	if exists(path + ".crt") {
		return nil
	}
	cert, key, err := ca.issue(user, group, names)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".key", key, 0o600); err != nil {
		return err
	}
	return os.WriteFile(path+".crt", cert, 0o644)
}

func (ca *authority) writeKubeconfig(dir, server string, who identity) error {
	path := filepath.Join(dir, who.file+".kubeconfig")
	if exists(path) {
		return nil
	}
	cert, key, err := ca.issue(who.user, who.group, nil)
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["lab"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca.pem}
	config.AuthInfos[who.user] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: who.user}
	config.CurrentContext = "lab"
	return clientcmd.WriteToFile(*config, path)
}

// writeTokenKey writes the pair that signs and checks service account tokens.
func writeTokenKey(dir string) error {
	path := filepath.Join(dir, "service-accounts")
	if exists(path + ".pub") {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := writeKey(path+".key", key); err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(crypto.PublicKey(key.Public()))
	if err != nil {
		return err
	}
	return os.WriteFile(path+".pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o644)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	text, err := keyPEM(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
