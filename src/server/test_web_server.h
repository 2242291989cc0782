// For tests: a web server on this machine that answers paths with fixed bytes, with or without TLS
// (under a certificate it signs itself).
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <istream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace sluice {

// A key and a certificate for `host`, as PEM.
struct TestCertificate {
  std::string key;
  std::string certificate;

  static TestCertificate of(const std::string& host) {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* made = X509_new();
    X509_set_version(made, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
    X509_gmtime_adj(X509_getm_notBefore(made), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made), 3600);
    X509_set_pubkey(made, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(host.c_str()), -1, -1, 0);
    X509_set_issuer_name(made, X509_get_subject_name(made));
    X509_EXTENSION* name =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, ("DNS:" + host).c_str());
    X509_add_ext(made, name, -1);
    X509_EXTENSION_free(name);
    X509_sign(made, key, EVP_sha256());
    TestCertificate result;
    result.key = pem([key](BIO* to) {
      PEM_write_bio_PrivateKey(to, key, nullptr, nullptr, 0, nullptr, nullptr);
    });
    result.certificate = pem([made](BIO* to) { PEM_write_bio_X509(to, made); });
    X509_free(made);
    EVP_PKEY_free(key);
    return result;
  }

 private:
  template <typename Write>
  static std::string pem(Write write) {
    BIO* memory = BIO_new(BIO_s_mem());
    write(memory);
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(memory, &bytes);
    std::string text(bytes, static_cast<std::size_t>(size));
    BIO_free(memory);
    return text;
  }
};

class TestWebServer {
 public:
  using tcp = boost::asio::ip::tcp;

  explicit TestWebServer(std::optional<TestCertificate> certificate = {})
      : certificate_(std::move(certificate)),
        acceptor_(io_, {boost::asio::ip::address_v4::loopback(), 0}),
        thread_([this] { run(); }) {}
  ~TestWebServer() {
    stopping_.store(true);
    boost::system::error_code ignored;
    tcp::socket wake(io_);
    wake.connect(acceptor_.local_endpoint(), ignored);
    thread_.join();
  }
  TestWebServer(const TestWebServer&) = delete;
  TestWebServer& operator=(const TestWebServer&) = delete;

  std::string port() const { return std::to_string(acceptor_.local_endpoint().port()); }
  int asked() const { return asked_.load(); }

  // What GET `path` gets, byte by byte; nothing at all while there is none for it.
  void answer(const std::string& path, std::string bytes) {
    const std::lock_guard lock(mutex_);
    answers_[path] = std::move(bytes);
  }
  void answer_with_body(const std::string& path, const std::string& body) {
    answer(path,
           "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  void redirect(const std::string& path, const std::string& location) {
    answer(path, "HTTP/1.1 302 Found\r\nLocation: " + location + "\r\nContent-Length: 0\r\n\r\n");
  }

 private:
  void run() {
    while (true) {
      boost::system::error_code error;
      tcp::socket socket(io_);
      acceptor_.accept(socket, error);
      if (stopping_.load() || error) {
        return;
      }
      if (certificate_) {
        boost::asio::ssl::context context(boost::asio::ssl::context::tls_server);
        context.use_private_key(boost::asio::buffer(certificate_->key),
                                boost::asio::ssl::context::pem);
        context.use_certificate_chain(boost::asio::buffer(certificate_->certificate));
        boost::asio::ssl::stream<tcp::socket&> stream(socket, context);
        stream.handshake(boost::asio::ssl::stream_base::server, error);
        serve(stream, error);
      } else {
        serve(socket, error);
      }
    }
  }

  template <typename Stream>
  void serve(Stream& stream, boost::system::error_code error) {
    boost::asio::streambuf request;
    if (!error) {
      boost::asio::read_until(stream, request, "\r\n\r\n", error);
    }
    if (error) {
      return;
    }
    asked_.fetch_add(1);
    std::istream lines(&request);
    std::string method;
    std::string path;
    lines >> method >> path;
    std::string bytes;
    {
      const std::lock_guard lock(mutex_);
      bytes = answers_[path];
    }
    for (int i = 0; bytes.empty() && i < 500 && !stopping_.load(); ++i) {  // silence
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    boost::asio::write(stream, boost::asio::buffer(bytes), error);
  }

  std::optional<TestCertificate> certificate_;
  boost::asio::io_context io_;
  tcp::acceptor acceptor_;
  std::mutex mutex_;  // guards answers_
  std::map<std::string, std::string> answers_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> asked_{0};
  std::thread thread_;
};

}  // namespace sluice
